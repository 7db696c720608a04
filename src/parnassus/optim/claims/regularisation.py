"""Claims about weight decay, early stopping and cross-validation (book sec. 2.2, Zhao sec. 3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal
from torch.func import grad

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.data.built_in.toy import curve, linear
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.optim.optimisers.weight_decay import (
    decay_weights,
    l2_gradient,
    l2_penalty,
    penalised_minimiser,
    shrinkage_factors,
    weight_decay_groups,
    weight_decay_step,
)
from parnassus.optim.training.cross_validation import cross_validate, k_folds
from parnassus.optim.training.early_stopping import EarlyStopping
from parnassus.probability import standard_normal


def random_quadratic(seed: int = 0, *, rank: int = 4) -> tuple[Tensor, Tensor]:
    """A Hessian of the given rank in four dimensions, and a minimiser."""
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(4, rank, generator=generator, dtype=torch.float64)
    return root @ root.T, torch.randn(4, generator=generator, dtype=torch.float64)


def quadratic_loss(hessian: Tensor, minimiser: Tensor, theta: Tensor) -> Tensor:
    return (theta - minimiser) @ hessian @ (theta - minimiser) / 2


def penalised_loss(hessian: Tensor, minimiser: Tensor, alpha: float, theta: Tensor) -> Tensor:
    return quadratic_loss(hessian, minimiser, theta) + l2_penalty(theta, alpha)


@claim("B2.2-9", "Z3.15")
def l2_penalty_is_weight_decay_in_sgd() -> Evidence:
    """A step on J + α/2 θᵀθ is (1 − ηα) θ − η∇J: torch's SGD with weight_decay = α (book ex. 2.3, book eq. 2.10)."""
    hessian, minimiser = random_quadratic()
    theta = torch.ones(4, dtype=torch.float64)
    gradient = grad(partial(quadratic_loss, hessian, minimiser))
    parameter = nn.Parameter(theta.clone())
    optimizer = torch.optim.SGD([parameter], lr=0.05, weight_decay=0.8)
    quadratic_loss(hessian, minimiser, parameter).backward()
    optimizer.step()
    step = weight_decay_step(theta, gradient(theta), learning_rate=0.05, weight_decay=0.8)
    zero = torch.zeros(4, dtype=torch.float64)
    flipped = weight_decay_step(theta, zero, learning_rate=1.0, weight_decay=1.5)
    diverging = theta
    for _ in range(50):
        diverging = weight_decay_step(diverging, zero, learning_rate=1.0, weight_decay=2.1)
    return all_of(
        gradient=close(
            grad(partial(penalised_loss, hessian, minimiser, 0.8))(theta),
            l2_gradient(theta, gradient(theta), 0.8),
            atol=1e-13,
        ),
        descent=close(step, theta - 0.05 * grad(partial(penalised_loss, hessian, minimiser, 0.8))(theta), atol=1e-13),
        torch_step=close(step, parameter, atol=1e-13),
        signs_change_above_1=less_equal(flipped, 0.0),
        divergence_above_2=greater_equal(diverging.abs(), 100.0),
    )


@claim("B2.2-9")
def weight_decay_shrinks_low_curvature_directions_most() -> Evidence:
    """The minimiser is (H + αI)⁻¹Hθ*; along eigenvector i, θ* is scaled by λ_i/(λ_i + α) (book ex. 2.3)."""
    hessian, minimiser = random_quadratic()
    values, vectors = torch.linalg.eigh(hessian)
    penalised = penalised_minimiser(hessian, minimiser, 0.5)
    factors = (vectors.T @ penalised) / (vectors.T @ minimiser)
    final = gradient_descent(
        partial(penalised_loss, hessian, minimiser, 0.5),
        torch.zeros(4, dtype=torch.float64),
        learning_rate=0.1,
        steps=600,
    )[-1]
    singular, minimiser_2 = random_quadratic(1, rank=2)
    norms = [penalised_minimiser(hessian, minimiser, 10.0**power).norm() for power in range(-3, 4)]
    return all_of(
        gradient_vanishes=close(grad(partial(penalised_loss, hessian, minimiser, 0.5))(penalised), 0.0, atol=1e-12),
        gradient_descent_converges_to_it=close(final, penalised, atol=1e-10),
        factors=close(factors, shrinkage_factors(values, 0.5), rtol=1e-10),
        low_curvature_shrinks_most=greater_equal(factors.diff(), 0.0),
        no_penalty=close(penalised_minimiser(hessian, minimiser, 1e-12), minimiser, atol=1e-9),
        large_penalty=close(penalised_minimiser(hessian, minimiser, 1e12), 0.0, atol=1e-9),
        norm_decreases=less_equal(torch.stack(norms).diff(), 0.0),
        singular_hessian=close(
            grad(partial(penalised_loss, singular, minimiser_2, 0.5))(penalised_minimiser(singular, minimiser_2, 0.5)),
            0.0,
            atol=1e-12,
        ),
    )


@claim("B2.2-9")
def l2_penalty_is_a_gaussian_prior() -> Evidence:
    """α/2 θᵀθ is −log N(θ; 0, I/α) up to a constant: θ̃ is the maximum a posteriori estimate (book sec. 2.2)."""
    hessian, minimiser = random_quadratic()
    prior = MultivariateNormal(torch.zeros(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64) / 0.5)
    thetas = standard_normal(20, 4)
    constant = torch.stack([l2_penalty(theta, 0.5) for theta in thetas]) + prior.log_prob(thetas)
    likelihood = MultivariateNormal(minimiser, precision_matrix=hessian)
    best = penalised_minimiser(hessian, minimiser, 0.5)
    gradient = grad(lambda theta: -likelihood.log_prob(theta) - prior.log_prob(theta))(best)
    return all_of(
        up_to_a_constant=close(constant, constant[0], atol=1e-12), posterior_mode=close(gradient, 0.0, atol=1e-11)
    )


def count_elements(parameters: object) -> int:
    assert isinstance(parameters, list)
    return sum(each.numel() for each in parameters)


@claim("Z3.15")
def decoupled_weight_decay_differs_from_l2_for_adam() -> Evidence:
    """For SGD L2 penalty and decoupled decay agree; for Adam only decoupled decay is uniform (book sec. 2.2)."""
    theta, scale = torch.ones(2, dtype=torch.float64), torch.tensor([100.0, 0.01], dtype=torch.float64)
    ends = {}
    for name, kind in {"penalty": torch.optim.Adam, "decoupled": torch.optim.AdamW}.items():
        generator = torch.Generator().manual_seed(0)
        parameter = nn.Parameter(theta.clone())
        optimizer = kind([parameter], lr=1e-3, weight_decay=1.0)
        for _ in range(1_000):  # gradients of pure noise, large for one weight and small for the other
            parameter.grad = scale * torch.randn(2, generator=generator, dtype=torch.float64)
            optimizer.step()
        ends[name] = parameter.detach()
    decayed = nn.Parameter(theta.clone())
    adam = torch.optim.Adam([decayed], lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(1_000):
        decayed.grad = scale * torch.randn(2, generator=generator, dtype=torch.float64)
        decayed.data = decay_weights(decayed.data, learning_rate=1e-3, weight_decay=1.0)
        adam.step()
    gradient = torch.tensor([3.0, -0.2], dtype=torch.float64)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    groups = weight_decay_groups(model, 0.3)
    decay = torch.tensor([group["weight_decay"] for group in groups])
    counts = torch.tensor([count_elements(group["params"]) for group in groups])
    return all_of(
        weights_decay_and_biases_do_not=close(decay, torch.tensor([0.3, 0.0])),
        numbers_of_weights_and_biases=close(counts, torch.tensor([20, 14])),
        equal_for_sgd=close(
            decay_weights(theta, learning_rate=0.1, weight_decay=0.3) - 0.1 * gradient,
            theta - 0.1 * l2_gradient(theta, gradient, 0.3),
            atol=1e-15,
        ),
        adam_with_decayed_weights_is_adamw=close(decayed, ends["decoupled"], atol=1e-12),
        decoupled_decay_is_uniform=less_equal((ends["decoupled"][0] - ends["decoupled"][1]).abs(), 0.05),
        l2_penalty_is_not=greater_equal((ends["penalty"][0] - ends["penalty"][1]).abs(), 0.5),
    )


@claim("Z3.14")
def cross_validation_validates_every_example_once() -> Evidence:
    """Folds are disjoint and cover all examples; their mean error selects the true degree (Zhao sec. 3)."""
    folds = k_folds(23, 5, generator=torch.Generator().manual_seed(0))
    validated = torch.cat([validation for _, validation in folds])
    sizes = torch.tensor([len(validation) for _, validation in folds])
    overlap = sum(int(torch.isin(train, validation).sum()) for train, validation in folds)
    data = curve(60, lambda x: 4 * x**3 - 3 * x, noise=0.3, low=-1.0, high=1.0, seed=0)
    assert data.y is not None
    x, y = data.x.double(), data.y.double()

    def errors(degree: int, train: Tensor, validation: Tensor) -> tuple[float, float]:
        powers = x ** torch.arange(degree + 1)
        w = torch.linalg.lstsq(powers[train], y[train]).solution
        residual = (powers @ w - y).square()
        return float(residual[train].mean()), float(residual[validation].mean())

    by_degree = {
        degree: cross_validate(60, 10, partial(errors, degree), generator=torch.Generator().manual_seed(1))
        for degree in range(1, 11)
    }
    best = min(by_degree, key=lambda degree: by_degree[degree].validation_error)
    return all_of(
        cover=close(validated.sort().values, torch.arange(23)),
        disjoint=close(overlap, 0),
        sizes=less_equal(sizes.max() - sizes.min(), 1),
        selects_the_cubic=close(best, 3, atol=1),
        training_error_would_not=less_equal(by_degree[10].training_error, by_degree[3].training_error),
        degree_1_underfits=greater_equal(by_degree[1].validation_error, 2 * by_degree[3].validation_error),
    )


@claim("B2.2-8")
def early_stopping_restores_the_best_weights() -> Evidence:
    """An overfitting network has its minimum validation error before the last epoch; it is restored (book sec. 2.2)."""
    torch.manual_seed(0)
    train, validation = (
        linear(size, (1.0,) + (0.0,) * 19, 0.0, noise=1.5, seed=seed) for size, seed in ((25, 0), (200, 1))
    )
    assert train.y is not None
    assert validation.y is not None
    net = nn.Sequential(nn.Linear(20, 200), nn.Tanh(), nn.Linear(200, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.0005)
    loss = nn.MSELoss()
    stopping, monitor = EarlyStopping(patience=50), EarlyStopping(patience=10_000)
    training_errors, validation_errors = [], []
    for _ in range(200):
        optimizer.zero_grad()
        error = loss(net(train.x), train.y)
        error.backward()
        optimizer.step()
        with torch.no_grad():
            validation_errors.append(float(loss(net(validation.x), validation.y)))
        training_errors.append(float(error.detach()))
        stopping.update(validation_errors[-1], net)
        monitor.update(validation_errors[-1], net)
    monitor.restore(net)
    with torch.no_grad():
        restored = float(loss(net(validation.x), validation.y))
    assert stopping.stopped_at is not None
    return all_of(
        training_error_decreases=close(training_errors[-1], min(training_errors), atol=0.001),
        validation_error_increases=greater_equal(validation_errors[-1], 1.1 * min(validation_errors)),
        recorded=close(monitor.best_error, min(validation_errors)),
        restored=close(restored, min(validation_errors), rtol=1e-6),
        best_before_the_last_epoch=less_equal(monitor.best_update, 199 - 50),
        stops_after_patience=close(stopping.stopped_at - stopping.best_update, 50),
        error_is_near_the_minimum=less_equal(stopping.best_error, 1.1 * min(validation_errors)),
    )
