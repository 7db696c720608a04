"""Claims about linear regression, its mini-batch step and its leave-one-out error (Zhao sec. 3)."""

from collections.abc import Callable
from functools import partial

import torch
from scipy import stats
from torch import Tensor, nn
from torch.func import grad, jacrev

from parnassus.atlas import Correction, Evidence, accepts, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.data.built_in.toy import linear, polynomial
from parnassus.layers.linear_models.linear_regression import (
    LinearRegression,
    append_ones,
    least_squares,
    leave_one_out_residuals,
    linear_model,
    linear_sgd_step,
    polynomial_features,
)
from parnassus.layers.linear_models.robust_regression import (
    absolute_error_weights,
    huber_weights,
    iteratively_reweighted_least_squares,
)
from parnassus.losses.regression import half_mean_squared_error, half_squared_error, mean_squared_error
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.optim.training.cross_validation import cross_validate
from parnassus.optim.training.minibatches import shuffled_batches
from parnassus.probability import standard_normal

SLOPES, INTERCEPT = (2.0, -3.4), 4.2


def sample_linear(count: int, *, noise: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Samples of y = 2 x₁ − 3.4 x₂ + 4.2 + noise, in double precision."""
    x = linear(count, SLOPES, INTERCEPT, noise=0.0, seed=seed).x.double()
    epsilon = standard_normal(count, seed=seed + 1)
    return x, x @ torch.tensor(SLOPES, dtype=torch.float64) + INTERCEPT + noise * epsilon


def half_loss(x: Tensor, y: Tensor, theta: Tensor) -> Tensor:
    """The training loss L(w, b) at θ = (w, b)."""
    return half_mean_squared_error(linear_model(x, theta[:-1], theta[-1]), y)


@claim("Z3.1")
def a_linear_fit_recovers_the_true_coefficients() -> Evidence:
    """A linear model is `nn.Linear(d, 1)`; its fit is exact without noise and estimates E[y|x] (Zhao sec. 3)."""
    x, y = sample_linear(1_000, noise=0.0)
    torch.manual_seed(0)
    layer = nn.Linear(2, 1).double()
    clean, noisy = LinearRegression.fit(x, y), LinearRegression.fit(x, sample_linear(1_000, noise=0.01)[1])
    generator = torch.Generator().manual_seed(5)
    skewed = y + 3 * (-torch.rand(len(y), generator=generator, dtype=torch.float64).log() - 1)  # mean 0, median below
    mean_fit = LinearRegression.fit(x, skewed)
    truth = torch.tensor([*SLOPES, INTERCEPT], dtype=torch.float64)
    error = 3 / len(y) ** 0.5  # approximate standard error of each coefficient
    return all_of(
        one_layer=close(linear_model(x, layer.weight[0], layer.bias[0]), layer(x)[:, 0], atol=1e-12),
        row_by_row=close(torch.stack([linear_model(row, clean.w, clean.b) for row in x]), y, atol=1e-12),
        exact=close(torch.cat([clean.w, clean.b[None]]), truth, atol=1e-13),
        with_noise=close(torch.cat([noisy.w, noisy.b[None]]), truth, atol=4 * 0.01 / 1_000**0.5),
        mean_under_skewed_noise=close(torch.cat([mean_fit.w, mean_fit.b[None]]), truth, atol=4 * error),
        not_the_median=greater_equal(abs(float((skewed - y).median())), 4 * error),
    )


@claim("Z3.2")
def the_half_cancels_and_the_loss_is_quadratic() -> Evidence:
    """∂/∂ŷ ½(ŷ − y)² = ŷ − y, and doubling the residual quadruples the loss (Zhao eq. 6)."""
    generator = torch.Generator().manual_seed(0)
    prediction, target = torch.randn(2, 50, generator=generator, dtype=torch.float64)
    gradient = grad(lambda each: half_squared_error(each, target).sum())(prediction)
    twice = half_squared_error(target + 2 * (prediction - target), target)
    return all_of(
        derivative=close(gradient, prediction - target, atol=1e-15),
        fourfold=close(twice, 4 * half_squared_error(prediction, target), rtol=1e-14),
    )


@claim("Z3.2")
def one_outlier_moves_the_squared_fit_without_bound() -> Evidence:
    """An outlier δ changes the least-squares slope by δ (x_i − x̄)/S_xx, robust slopes boundedly (Zhao sec. 3)."""
    x = torch.linspace(-1, 1, 21, dtype=torch.float64)
    noise = 0.1 * standard_normal(21, seed=3)
    fits: dict[str, Callable[[Tensor], LinearRegression]] = {
        "squared": lambda y: LinearRegression.fit(x[:, None], y),
        "absolute": lambda y: iteratively_reweighted_least_squares(x[:, None], y, absolute_error_weights),
        "huber": lambda y: iteratively_reweighted_least_squares(x[:, None], y, partial(huber_weights, delta=0.2)),
    }
    sizes = torch.tensor([10.0, 100.0, 1e4], dtype=torch.float64)
    change = {}
    for name, fit in fits.items():
        slopes = []
        for size in (0.0, *sizes.tolist()):
            y = x + noise
            y[-1] += size
            slopes.append(fit(y).w[0])
        change[name] = torch.stack(slopes[1:]) - slopes[0]
    return all_of(
        squared_is_proportional=close(change["squared"], sizes * x[-1] / x.square().sum(), rtol=1e-9),
        absolute_is_bounded=less_equal(change["absolute"].abs(), 0.1),
        absolute_is_independent_of_size=close(change["absolute"], change["absolute"][0], atol=1e-5),
        huber_is_bounded=less_equal(change["huber"].abs(), 0.1),
        huber_is_independent_of_size=close(change["huber"], change["huber"][0], atol=1e-6),
    )


@claim("Z3.3", "D1.3.4")
def the_training_loss_is_convex_with_the_least_squares_minimum() -> Evidence:
    """L is half of torch's MSE, its Hessian X̃ᵀX̃/n ⪰ 0, and its minimum the least-squares fit (Zhao eq. 7)."""
    x, y = sample_linear(200, noise=1.0)
    best = torch.cat([each.reshape(-1) for each in least_squares(x, y)])
    theta = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    design = append_ones(x)
    curvature = jacrev(jacrev(partial(half_loss, x, y)))(theta)
    normal = torch.linalg.solve(design.T @ design, design.T @ y)
    end = gradient_descent(partial(half_loss, x, y), torch.zeros_like(theta), learning_rate=0.5, steps=200)[-1]
    return all_of(
        half=close(half_loss(x, y, theta), 0.5 * nn.MSELoss()(linear_model(x, theta[:-1], theta[-1]), y), rtol=1e-14),
        hessian=close(curvature, design.T @ design / len(x), atol=1e-14),
        convex=greater_equal(torch.linalg.eigvalsh(curvature), 0.0),
        zero_gradient_at_minimum=close(grad(partial(half_loss, x, y))(best), 0.0, atol=1e-14),
        normal_equations=close(normal, best, atol=1e-12),
        descent=close(end, best, atol=1e-10),
    )


def autograd_step(
    x: Tensor, y: Tensor, w: Tensor, b: Tensor, *, learning_rate: float, weight_decay: float = 0.0
) -> tuple[Tensor, ...]:
    """One step of torch's SGD from (w, b) on the half mean squared error, with weight decay on w only."""
    weight, bias = nn.Parameter(w.clone()), nn.Parameter(b.clone())
    groups = [{"params": [weight], "weight_decay": weight_decay}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(groups, lr=learning_rate)
    half_mean_squared_error(linear_model(x, weight, bias), y).backward()
    optimizer.step()
    return weight.detach(), bias.detach()


@claim("Z3.5")
def the_explicit_step_is_the_autograd_step() -> Evidence:
    """The explicit step equals torch's SGD; with a decaying learning rate it converges to the minimum (Zhao sec. 3)."""
    x, y = sample_linear(256, noise=0.5)
    w, b = torch.tensor([1.0, 1.0], dtype=torch.float64), torch.tensor(-1.0, dtype=torch.float64)
    explicit = linear_sgd_step(w, b, x[:10], y[:10], learning_rate=0.1)
    by_autograd = autograd_step(x[:10], y[:10], w, b, learning_rate=0.1)
    generator = torch.Generator().manual_seed(0)
    for step, rows in enumerate(shuffled_batches(256, 16, epochs=40, generator=generator)):
        w, b = linear_sgd_step(w, b, x[rows], y[rows], learning_rate=1 / (2 + step / 16))
    best = least_squares(x, y)
    return all_of(
        weights=close(explicit[0], by_autograd[0], atol=1e-15),
        bias=close(explicit[1], by_autograd[1], atol=1e-15),
        converged_weights=close(w, best[0], atol=0.01),
        converged_bias=close(b, best[1], atol=0.01),
    )


@erratum("Z3.5", printed="b ← w − η/|B| Σ (wᵀxᵢ + b − yᵢ)", right="b ← b − η/|B| Σ (wᵀxᵢ + b − yᵢ)")
def the_bias_step_starts_from_the_bias() -> Correction:
    """The printed step computes b from w; with more than one feature the shapes do not match (Zhao sec. 3)."""
    x, y = sample_linear(20, noise=0.5)
    x = x[:, :1]
    w, b = torch.tensor([1.0], dtype=torch.float64), torch.tensor(-1.0, dtype=torch.float64)
    _, expected = autograd_step(x, y, w, b, learning_rate=0.1)
    update = 0.1 * (linear_model(x, w, b) - y).mean()
    return Correction(
        printed=close(w[0] - update, expected, rtol=1e-6), corrected=close(b - update, expected, rtol=1e-12)
    )


@claim("Z3.7")
def the_noise_of_the_linear_data_is_normal() -> Evidence:
    """The residuals of the generated linear data are normal with mean 0 and variance σ² (Zhao sec. 3)."""
    data = linear(20_000, SLOPES, INTERCEPT, noise=0.5, seed=1)
    assert data.y is not None
    residual = ((data.y - linear_model(data.x, torch.tensor(SLOPES), torch.tensor(INTERCEPT))) / 0.5).double()
    squares = float(residual.square().sum())
    tails = stats.chi2.cdf(squares, 20_000)
    return all_of(
        mean=accepts(float(stats.ttest_1samp(residual.numpy(), 0.0).pvalue)),
        variance=accepts(float(2 * min(tails, 1 - tails))),
        normality=accepts(float(stats.kstest(residual.numpy(), "norm").pvalue)),
        independent_of_x=close(data.x.double().T @ residual / 20_000, 0.0, atol=4 / 20_000**0.5),
    )


@claim("Z3.13")
def degree_n_minus_one_interpolates_n_points() -> Evidence:
    """Degree 3 recovers a cubic, degree n − 1 interpolates n points; training error is non-increasing (Zhao sec. 3)."""
    train, test = polynomial(20, noise=0.1, seed=0), polynomial(2_000, noise=0.1, seed=1)
    assert train.y is not None
    assert test.y is not None
    x, y = train.x[:, 0].double(), train.y[:, 0].double()
    errors, test_errors = [], []
    for degree in range(1, 20):
        model = LinearRegression.fit(polynomial_features(x, degree), y)
        errors.append(mean_squared_error(model.predict(polynomial_features(x, degree)), y))
        predictions = model.predict(polynomial_features(test.x[:, 0].double(), degree))
        test_errors.append(mean_squared_error(predictions, test.y[:, 0].double()))
    clean = 5 + 1.2 * x - 3.4 * x**2 / 2 + 5.6 * x**3 / 6
    cubic = LinearRegression.fit(polynomial_features(x, 3), clean)
    return all_of(
        interpolates=less_equal(errors[-1], 1e-15),
        degree_one_lower_does_not=greater_equal(errors[-2], 1e-8),
        non_increasing=less_equal(torch.stack(errors).diff(), 1e-15),
        cubic=close(cubic.predict(polynomial_features(x, 3)), clean, atol=1e-12),
        a_line_underfits=greater_equal(test_errors[0], 10 * float(test_errors[2])),
        degree_19_overfits=greater_equal(test_errors[18], 10 * float(test_errors[2])),
        degree_3_reaches_the_noise_variance=close(test_errors[2], 0.01, rtol=0.5),
    )


@claim("Z3.14")
def leave_one_out_has_a_closed_form() -> Evidence:
    """With k = n, the cross-validation error of least squares is the mean of (r_i / (1 − h_ii))² (Zhao sec. 3)."""
    x, y = sample_linear(40, noise=1.0)

    def errors(train: Tensor, validation: Tensor) -> tuple[float, float]:
        model = LinearRegression.fit(x[train], y[train])
        train_error, test_error = (mean_squared_error(model.predict(x[rows]), y[rows]) for rows in (train, validation))
        return float(train_error), float(test_error)

    result = cross_validate(40, 40, errors)
    training_error = mean_squared_error(LinearRegression.fit(x, y).predict(x), y)
    return all_of(
        hat_matrix=close(result.validation_error, leave_one_out_residuals(x, y).square().mean(), rtol=1e-12),
        larger_than_training=greater_equal(result.validation_error, training_error),
    )
