"""Claims about noise and likelihood, and about error seen and error to expect (Diehl sec. 1.3, Zhao sec. 3)."""

from functools import partial
from math import log, pi

import torch
from torch import Tensor
from torch.distributions import Normal
from torch.func import grad

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.data import load_digits
from parnassus.layers.classifier import dense_classifier
from parnassus.layers.linear_regression import LinearRegression, least_squares, linear_model, polynomial_features
from parnassus.layers.robust_regression import absolute_weights, reweighted_least_squares
from parnassus.losses.classification import softmax
from parnassus.losses.likelihood import coin_nll, laplace_nll, likeliest_sigma, normal_nll
from parnassus.losses.risk import empirical_risk, expected_risk, held_out_risk, zero_one_loss
from parnassus.losses.squared import half_mean_squared_error, squared_error
from parnassus.optim.gradient_descent import gradient_descent

SIGMA = 0.3


def sine_rows(count: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows of the law: x uniform on [−1, 1], y = sin 3x + ε, ε ~ N(0, 0.3²)."""
    x = 2 * torch.rand(count, generator=source, dtype=torch.float64) - 1
    return x, torch.sin(3 * x) + SIGMA * torch.randn(count, generator=source, dtype=torch.float64)


def sine_density(x: Tensor, y: Tensor) -> Tensor:
    density: Tensor = Normal(torch.sin(3 * x), SIGMA).log_prob(y).exp() / 2
    return density


def fitted_polynomial(x: Tensor, y: Tensor, degree: int) -> LinearRegression:
    return LinearRegression.fit(polynomial_features(x, degree), y)


def answer(model: LinearRegression, degree: int, x: Tensor) -> Tensor:
    return model.predict(polynomial_features(x, degree))


def normal_loss(x: Tensor, y: Tensor, sigma: float, theta: Tensor) -> Tensor:
    """−log P(y|X) of θ = (w, b)."""
    return normal_nll(linear_model(x, theta[:-1], theta[-1]), y, sigma=sigma).sum()


@claim("Z3.8")
def normal_noise_makes_the_squared_loss() -> Evidence:
    """−log P(y|X) = n/2 log(2πσ²) + n/σ² · L: least squares is the likeliest line for every σ (Zhao sec. 3)."""
    source = torch.Generator().manual_seed(0)
    x = torch.randn(300, 2, generator=source, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -2.0], dtype=torch.float64) + torch.randn(300, generator=source, dtype=torch.float64)
    theta = torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64)
    loss = half_mean_squared_error(linear_model(x, theta[:-1], theta[-1]), y)
    slope = grad(lambda each: half_mean_squared_error(linear_model(x, each[:-1], each[-1]), y))(theta)
    best = torch.cat([each.reshape(-1) for each in least_squares(x, y)])
    parts = {}
    for sigma in (0.1, 1.0, 7.0):
        identity = 150 * log(2 * pi * sigma**2) + 300 / sigma**2 * loss
        factor = 300 / sigma**2
        parts[f"identity_at_σ_{sigma:g}"] = close(normal_loss(x, y, sigma, theta), identity, rtol=1e-12)
        parts[f"gradient_at_σ_{sigma:g}"] = close(
            grad(partial(normal_loss, x, y, sigma))(theta), factor * slope, rtol=1e-10
        )
        parts[f"level_at_least_squares_at_σ_{sigma:g}"] = close(
            grad(partial(normal_loss, x, y, sigma))(best) / factor, 0.0, atol=1e-13
        )
    fitted = linear_model(x, best[:-1], best[-1])
    sigma_hat = likeliest_sigma(fitted, y)
    around = [normal_nll(fitted, y, sigma=float(sigma_hat) * each).sum() for each in (0.98, 1.0, 1.02)]
    return all_of(
        **parts,
        less_likely_on_both_sides=at_most(around[1], min(float(around[0]), float(around[2]))),
    )


@claim("Z3.8")
def the_product_of_densities_leaves_the_floats() -> Evidence:
    """The likelihood of 1,000 points is 0 for wide noise, ∞ for narrow, in doubles; its log is finite (Zhao sec. 3)."""
    source = torch.Generator().manual_seed(0)
    unit = torch.randn(1_000, generator=source, dtype=torch.float64)
    still = torch.zeros(1_000, dtype=torch.float64)
    wide, narrow = (normal_nll(still, sigma * unit, sigma=sigma) for sigma in (3.0, 0.01))
    return all_of(
        underflow=close((-wide).exp().prod(), 0.0),
        overflow=close((-narrow).exp().prod(), float("inf")),
        log_of_the_first=close(wide.sum(), 1_000 * (log(3) + 1.4189), rtol=0.03),
        log_of_the_second=close(narrow.sum(), 1_000 * (log(0.01) + 1.4189), rtol=0.03),
    )


@claim("Z3.8")
def another_noise_makes_another_loss() -> Evidence:
    """Laplace noise makes the absolute error, a coin its share of heads, 9/13 and 0.97131 (Zhao sec. 3)."""
    source = torch.Generator().manual_seed(1)
    x = torch.randn(80, 1, generator=source, dtype=torch.float64)
    y = 2 * x[:, 0] + torch.randn(80, generator=source, dtype=torch.float64) ** 3
    squared, absolute = LinearRegression.fit(x, y), reweighted_least_squares(x, y, absolute_weights, steps=300)
    laplace = [laplace_nll(model.predict(x), y, scale=1.0).sum() for model in (absolute, squared)]
    normal = [normal_nll(model.predict(x), y, sigma=1.0).sum() for model in (absolute, squared)]
    return all_of(
        absolute_is_likelier_under_laplace=at_most(laplace[0], laplace[1]),
        squared_is_likelier_under_normal=at_most(normal[1], normal[0]),
        thirteen_throws=close(likeliest_coin(9, 4, eta=4.0), 9 / 13, atol=1e-9),
        millions_of_throws=close(
            likeliest_coin(8_675_309, 256_245, eta=30.0), 8_675_309 / (8_675_309 + 256_245), atol=1e-9
        ),
    )


def likeliest_coin(heads: int, tails: int, *, eta: float) -> Tensor:
    """The chance of heads that gradient descent on the mean loss of a throw arrives at."""

    def loss(logit: Tensor) -> Tensor:
        return coin_nll(logit, heads=heads, tails=tails) / (heads + tails)

    return gradient_descent(loss, torch.tensor(0.0, dtype=torch.float64), rate=eta, steps=400)[-1].sigmoid()


@claim("Z3.10", "Z3.11", "D1.3.2")
def held_out_error_is_unbiased_and_training_error_too_kind() -> Evidence:
    """Test errors scatter about R (by quadrature) with spread n^{−1/2}; training error lies below it (Zhao sec. 3)."""
    source = torch.Generator().manual_seed(0)
    x, y = sine_rows(30, source)
    model = fitted_polynomial(x, y, 5)
    predictor = partial(answer, model, 5)
    risk = expected_risk(squared_error, predictor, sine_density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0))
    sizes = (10, 40, 160, 640)
    spread, centre = [], []
    for size in sizes:
        draws = torch.tensor(
            [held_out_risk(squared_error, predictor, *sine_rows(size, source)).value for _ in range(200)]
        )
        spread.append(float(draws.std()))
        centre.append(float(draws.mean() - risk) / float(draws.std() / 200**0.5))
    kind = []
    for _ in range(60):
        x, y = sine_rows(30, source)
        own = partial(answer, fitted_polynomial(x, y, 5), 5)
        fresh = empirical_risk(squared_error, own, *sine_rows(1_000, source))
        kind.append((float(empirical_risk(squared_error, own, x, y)), float(fresh)))
    trained, unseen = torch.tensor(kind).unbind(1)
    return all_of(
        mass=close(
            expected_risk(
                lambda f, _: torch.ones_like(f), predictor, sine_density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0)
            ),
            1.0,
            atol=1e-9,
        ),
        never_below_the_noise=at_least(risk, SIGMA**2),
        unbiased_in_standard_errors=at_most(torch.tensor(centre).abs(), 4.0),
        spread=rate(torch.tensor(sizes), torch.tensor(spread), -0.5, atol=0.06),
        training_is_below_the_noise=at_most(trained.mean(), SIGMA**2 * (1 - 6 / 30) * 1.05),
        unseen_is_above_it=at_least(unseen.median(), SIGMA**2),
    )


@claim("D1.3.1", "D1.3.2")
def a_predictor_answers_with_a_label_or_with_a_distribution() -> Evidence:
    """Softmax outputs are ≥ 0 and sum to 1; the label of the largest has the 0-1 loss 1 − accuracy (Diehl sec. 1.3)."""
    digits = load_digits()
    labels = digits.test.y
    assert labels is not None
    torch.manual_seed(0)
    model = dense_classifier(64, 10, hidden=(32,))
    with torch.no_grad():
        chances = softmax(model(digits.test.x).double())
        wrong = empirical_risk(zero_one_loss, model.predict, digits.test.x, labels)
    right = sum(int(each == label) for each, label in zip(chances.argmax(-1), labels, strict=True))
    return all_of(
        not_negative=at_least(chances, 0.0),
        sums_to_one=close(chances.sum(-1), 1.0, atol=1e-12),
        mistakes=close(wrong, 1 - right / len(labels), atol=1e-6),
    )
