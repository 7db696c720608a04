"""Claims about noise models and likelihoods, and about training and expected error (Diehl sec. 1.3, Zhao sec. 3)."""

from functools import partial
from math import log, pi

import torch
from torch import Tensor
from torch.distributions import Normal
from torch.func import grad

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.data import load_digits
from parnassus.layers.classifier import dense_classifier, evaluate
from parnassus.layers.linear_models.linear_regression import (
    LinearRegression,
    least_squares,
    linear_model,
    polynomial_features,
)
from parnassus.layers.linear_models.robust_regression import (
    absolute_error_weights,
    iteratively_reweighted_least_squares,
)
from parnassus.losses.classification import softmax
from parnassus.losses.likelihood import bernoulli_nll, laplace_nll, normal_nll, normal_std_mle
from parnassus.losses.regression import half_mean_squared_error, squared_error
from parnassus.losses.risk import empirical_risk, expected_risk, held_out_risk, zero_one_loss
from parnassus.optim.optimisers.gradient_descent import gradient_descent

SIGMA = 0.3


def sample_noisy_sine(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Samples of x uniform on [−1, 1], y = sin 3x + ε, ε ~ N(0, 0.3²)."""
    x = 2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1
    return x, torch.sin(3 * x) + SIGMA * torch.randn(count, generator=generator, dtype=torch.float64)


def sine_density(x: Tensor, y: Tensor) -> Tensor:
    density: Tensor = Normal(torch.sin(3 * x), SIGMA).log_prob(y).exp() / 2
    return density


def fit_polynomial(x: Tensor, y: Tensor, degree: int) -> LinearRegression:
    return LinearRegression.fit(polynomial_features(x, degree), y)


def predict_polynomial(model: LinearRegression, degree: int, x: Tensor) -> Tensor:
    return model.predict(polynomial_features(x, degree))


def normal_loss(x: Tensor, y: Tensor, sigma: float, theta: Tensor) -> Tensor:
    """−log P(y|X) of θ = (w, b)."""
    return normal_nll(linear_model(x, theta[:-1], theta[-1]), y, sigma=sigma).sum()


@claim("Z3.8")
def normal_noise_gives_the_squared_loss() -> Evidence:
    """−log P(y|X) = n/2 log(2πσ²) + n/σ² · L: least squares is the MLE for every σ (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 2, generator=generator, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -2.0], dtype=torch.float64) + torch.randn(300, generator=generator, dtype=torch.float64)
    theta = torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64)
    loss = half_mean_squared_error(linear_model(x, theta[:-1], theta[-1]), y)
    gradient = grad(lambda each: half_mean_squared_error(linear_model(x, each[:-1], each[-1]), y))(theta)
    best = torch.cat([each.reshape(-1) for each in least_squares(x, y)])
    parts = {}
    for sigma in (0.1, 1.0, 7.0):
        identity = 150 * log(2 * pi * sigma**2) + 300 / sigma**2 * loss
        factor = 300 / sigma**2
        parts[f"identity_at_σ_{sigma:g}"] = close(normal_loss(x, y, sigma, theta), identity, rtol=1e-12)
        parts[f"gradient_at_σ_{sigma:g}"] = close(
            grad(partial(normal_loss, x, y, sigma))(theta), factor * gradient, rtol=1e-10
        )
        parts[f"zero_gradient_at_least_squares_for_σ_{sigma:g}"] = close(
            grad(partial(normal_loss, x, y, sigma))(best) / factor, 0.0, atol=1e-13
        )
    fitted = linear_model(x, best[:-1], best[-1])
    sigma_hat = normal_std_mle(fitted, y)
    nll_near = [normal_nll(fitted, y, sigma=float(sigma_hat) * each).sum() for each in (0.98, 1.0, 1.02)]
    return all_of(
        **parts,
        sigma_hat_is_a_maximum=less_equal(nll_near[1], min(float(nll_near[0]), float(nll_near[2]))),
    )


@claim("Z3.8")
def the_likelihood_underflows_or_overflows() -> Evidence:
    """The likelihood of 1,000 points is 0 (wide noise) or ∞ (narrow) in float64; its log is finite (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(0)
    unit = torch.randn(1_000, generator=generator, dtype=torch.float64)
    mean = torch.zeros(1_000, dtype=torch.float64)
    wide, narrow = (normal_nll(mean, sigma * unit, sigma=sigma) for sigma in (3.0, 0.01))
    return all_of(
        underflow=close((-wide).exp().prod(), 0.0),
        overflow=close((-narrow).exp().prod(), float("inf")),
        log_likelihood_wide=close(wide.sum(), 1_000 * (log(3) + 1.4189), rtol=0.03),
        log_likelihood_narrow=close(narrow.sum(), 1_000 * (log(0.01) + 1.4189), rtol=0.03),
    )


@claim("Z3.8")
def other_noise_gives_another_loss() -> Evidence:
    """Laplace noise gives the absolute error; Bernoulli the fraction of heads, 9/13 and 0.97131 (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(80, 1, generator=generator, dtype=torch.float64)
    y = 2 * x[:, 0] + torch.randn(80, generator=generator, dtype=torch.float64) ** 3
    squared, absolute = (
        LinearRegression.fit(x, y),
        iteratively_reweighted_least_squares(x, y, absolute_error_weights, steps=300),
    )
    laplace = [laplace_nll(model.predict(x), y, scale=1.0).sum() for model in (absolute, squared)]
    normal = [normal_nll(model.predict(x), y, sigma=1.0).sum() for model in (absolute, squared)]
    return all_of(
        absolute_fit_more_likely_under_laplace=less_equal(laplace[0], laplace[1]),
        squared_fit_more_likely_under_normal=less_equal(normal[1], normal[0]),
        thirteen_throws=close(bernoulli_mle(9, 4, learning_rate=4.0), 9 / 13, atol=1e-9),
        millions_of_throws=close(
            bernoulli_mle(8_675_309, 256_245, learning_rate=30.0), 8_675_309 / (8_675_309 + 256_245), atol=1e-9
        ),
    )


def bernoulli_mle(heads: int, tails: int, *, learning_rate: float) -> Tensor:
    """The probability of heads found by gradient descent on the mean negative log-likelihood."""

    def loss(logit: Tensor) -> Tensor:
        return bernoulli_nll(logit, heads=heads, tails=tails) / (heads + tails)

    return gradient_descent(loss, torch.tensor(0.0, dtype=torch.float64), learning_rate=learning_rate, steps=400)[
        -1
    ].sigmoid()


@claim("Z3.10", "Z3.11", "D1.3.2")
def held_out_error_is_unbiased_and_training_error_optimistic() -> Evidence:
    """Test error scatters around R with standard deviation ∝ n^{−1/2}; training error is below R (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(0)
    x, y = sample_noisy_sine(30, generator)
    model = fit_polynomial(x, y, 5)
    predictor = partial(predict_polynomial, model, 5)
    risk = expected_risk(squared_error, predictor, sine_density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0))
    sizes = (10, 40, 160, 640)
    spread, bias = [], []
    for size in sizes:
        estimates = torch.tensor(
            [held_out_risk(squared_error, predictor, *sample_noisy_sine(size, generator)).value for _ in range(200)]
        )
        spread.append(float(estimates.std()))
        bias.append(float(estimates.mean() - risk) / float(estimates.std() / 200**0.5))
    pairs = []
    for _ in range(60):
        x, y = sample_noisy_sine(30, generator)
        own = partial(predict_polynomial, fit_polynomial(x, y, 5), 5)
        fresh = empirical_risk(squared_error, own, *sample_noisy_sine(1_000, generator))
        pairs.append((float(empirical_risk(squared_error, own, x, y)), float(fresh)))
    training, test = torch.tensor(pairs).unbind(1)
    return all_of(
        density_integrates_to_one=close(
            expected_risk(
                lambda f, _: torch.ones_like(f), predictor, sine_density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0)
            ),
            1.0,
            atol=1e-9,
        ),
        risk_at_least_noise_variance=greater_equal(risk, SIGMA**2),
        bias_in_standard_errors=less_equal(torch.tensor(bias).abs(), 4.0),
        spread=rate(torch.tensor(sizes), torch.tensor(spread), -0.5, atol=0.06),
        training_error_below_noise_variance=less_equal(training.mean(), SIGMA**2 * (1 - 6 / 30) * 1.05),
        test_error_above_noise_variance=greater_equal(test.median(), SIGMA**2),
    )


@claim("D1.3.1", "D1.3.2")
def a_classifier_predicts_a_label_or_a_distribution() -> Evidence:
    """Softmax outputs are ≥ 0 and sum to 1; the 0-1 loss of their argmax is 1 − accuracy (Diehl sec. 1.3)."""
    digits = load_digits()
    labels = digits.test.y
    assert labels is not None
    torch.manual_seed(0)
    model = dense_classifier(64, 10, hidden=(32,))
    with torch.no_grad():
        probabilities = softmax(model(digits.test.x).double())
        error_rate = empirical_risk(zero_one_loss, model.predict, digits.test.x, labels)
    x, y = sample_noisy_sine(30, torch.Generator().manual_seed(0))
    regression = LinearRegression.fit(x[:, None], y)
    least = empirical_risk(squared_error, regression.predict, x[:, None], y)
    shifted = [
        empirical_risk(squared_error, LinearRegression(regression.w + dw, regression.b + db).predict, x[:, None], y)
        for dw, db in ((1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-3), (0.0, -1e-3))
    ]
    correct = sum(int(each == label) for each, label in zip(probabilities.argmax(-1), labels, strict=True))
    return all_of(
        not_negative=greater_equal(probabilities, 0.0),
        sums_to_one=close(probabilities.sum(-1), 1.0, atol=1e-12),
        zero_one_loss=close(error_rate, 1 - correct / len(labels), atol=1e-6),
        evaluation=close(evaluate(model, digits.test.x, labels).accuracy, correct / len(labels), atol=1e-6),
        regression_minimises_the_empirical_risk=greater_equal(torch.stack(shifted) - least, 0.0),
    )
