"""Claims about weight decay, early stopping and cross-validation (book sec. 2.2, Zhao sec. 3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal
from torch.func import grad

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.data.toy import curve, linear
from parnassus.optim.early_stopping import EarlyStopping
from parnassus.optim.folds import cross_validate, k_folds
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.weight_decay import (
    decay_weights,
    decayed_step,
    l2_gradient,
    l2_penalty,
    penalised_minimiser,
    shrinkage,
)


def bowl(seed: int = 0, *, rank: int = 4) -> tuple[Tensor, Tensor]:
    """A Hessian of the given rank in four dimensions, and the place of the minimum."""
    source = torch.Generator().manual_seed(seed)
    root = torch.randn(4, rank, generator=source, dtype=torch.float64)
    return root @ root.T, torch.randn(4, generator=source, dtype=torch.float64)


def quadratic(hessian: Tensor, minimiser: Tensor, theta: Tensor) -> Tensor:
    return (theta - minimiser) @ hessian @ (theta - minimiser) / 2


def penalised(hessian: Tensor, minimiser: Tensor, alpha: float, theta: Tensor) -> Tensor:
    return quadratic(hessian, minimiser, theta) + l2_penalty(theta, alpha)


@claim("B2.2-9", "Z3.15")
def the_penalty_shrinks_before_the_step() -> Evidence:
    """A step on J + α/2 θᵀθ is (1 − ηα) θ − η∇J: torch's SGD with weight_decay = α (book ex. 2.3, book eq. 2.10)."""
    hessian, minimiser = bowl()
    theta = torch.ones(4, dtype=torch.float64)
    slope = grad(partial(quadratic, hessian, minimiser))
    parameter = nn.Parameter(theta.clone())
    optimizer = torch.optim.SGD([parameter], lr=0.05, weight_decay=0.8)
    quadratic(hessian, minimiser, parameter).backward()
    optimizer.step()
    step = decayed_step(theta, slope(theta), rate=0.05, decay=0.8)
    still = torch.zeros(4, dtype=torch.float64)
    flips = decayed_step(theta, still, rate=1.0, decay=1.5)
    grows = theta
    for _ in range(50):
        grows = decayed_step(grows, still, rate=1.0, decay=2.1)
    return all_of(
        gradient=close(
            grad(partial(penalised, hessian, minimiser, 0.8))(theta), l2_gradient(theta, slope(theta), 0.8), atol=1e-13
        ),
        descent=close(step, theta - 0.05 * grad(partial(penalised, hessian, minimiser, 0.8))(theta), atol=1e-13),
        torch_step=close(step, parameter, atol=1e-13),
        beyond_1_the_sign_flips=at_most(flips, 0.0),
        beyond_2_it_grows=at_least(grows.abs(), 100.0),
    )


@claim("B2.2-9")
def flat_directions_shrink_most() -> Evidence:
    """The minimiser is (H + αI)⁻¹Hθ*; along eigenvector i the component of θ* keeps λ_i/(λ_i + α) (book ex. 2.3)."""
    hessian, minimiser = bowl()
    values, vectors = torch.linalg.eigh(hessian)
    moved = penalised_minimiser(hessian, minimiser, 0.5)
    kept = (vectors.T @ moved) / (vectors.T @ minimiser)
    rest = gradient_descent(
        partial(penalised, hessian, minimiser, 0.5), torch.zeros(4, dtype=torch.float64), rate=0.1, steps=600
    )[-1]
    flat, place = bowl(1, rank=2)
    norms = [penalised_minimiser(hessian, minimiser, 10.0**power).norm() for power in range(-3, 4)]
    return all_of(
        level=close(grad(partial(penalised, hessian, minimiser, 0.5))(moved), 0.0, atol=1e-12),
        descent_ends_there=close(rest, moved, atol=1e-10),
        factors=close(kept, shrinkage(values, 0.5), rtol=1e-10),
        the_flattest_most=at_least(kept.diff(), 0.0),
        no_penalty=close(penalised_minimiser(hessian, minimiser, 1e-12), minimiser, atol=1e-9),
        all_penalty=close(penalised_minimiser(hessian, minimiser, 1e12), 0.0, atol=1e-9),
        norm_falls=at_most(torch.stack(norms).diff(), 0.0),
        no_curvature_needed=close(
            grad(partial(penalised, flat, place, 0.5))(penalised_minimiser(flat, place, 0.5)), 0.0, atol=1e-12
        ),
    )


@claim("B2.2-9")
def the_penalty_is_a_gaussian_prior() -> Evidence:
    """α/2 θᵀθ is −log N(θ; 0, I/α) up to a constant: θ̃ is the likeliest θ a posteriori (book sec. 2.2)."""
    hessian, minimiser = bowl()
    prior = MultivariateNormal(torch.zeros(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64) / 0.5)
    thetas = torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    constant = torch.stack([l2_penalty(theta, 0.5) for theta in thetas]) + prior.log_prob(thetas)
    likelihood = MultivariateNormal(minimiser, precision_matrix=hessian)
    best = penalised_minimiser(hessian, minimiser, 0.5)
    pull = grad(lambda theta: -likelihood.log_prob(theta) - prior.log_prob(theta))(best)
    return all_of(up_to_a_constant=close(constant, constant[0], atol=1e-12), likeliest=close(pull, 0.0, atol=1e-11))


@claim("Z3.15")
def decoupled_decay_is_another_thing_for_adam() -> Evidence:
    """For plain descent a penalty and decoupled decay agree; for Adam only the latter shrinks alike (book sec. 2.2)."""
    theta, steep = torch.ones(2, dtype=torch.float64), torch.tensor([100.0, 0.01], dtype=torch.float64)
    ends = {}
    for name, kind in {"penalty": torch.optim.Adam, "decoupled": torch.optim.AdamW}.items():
        source = torch.Generator().manual_seed(0)
        parameter = nn.Parameter(theta.clone())
        optimizer = kind([parameter], lr=1e-3, weight_decay=1.0)
        for _ in range(1_000):  # gradients of pure noise, large for one weight and small for the other
            parameter.grad = steep * torch.randn(2, generator=source, dtype=torch.float64)
            optimizer.step()
        ends[name] = parameter.detach()
    alone = nn.Parameter(theta.clone())
    beside = torch.optim.Adam([alone], lr=1e-3)
    source = torch.Generator().manual_seed(0)
    for _ in range(1_000):
        alone.grad = steep * torch.randn(2, generator=source, dtype=torch.float64)
        alone.data = decay_weights(alone.data, rate=1e-3, decay=1.0)
        beside.step()
    slope = torch.tensor([3.0, -0.2], dtype=torch.float64)
    return all_of(
        plain_descent=close(
            decay_weights(theta, rate=0.1, decay=0.3) - 0.1 * slope,
            theta - 0.1 * l2_gradient(theta, slope, 0.3),
            atol=1e-15,
        ),
        decay_beside_adam_is_adamw=close(alone, ends["decoupled"], atol=1e-12),
        decoupled_shrinks_alike=at_most((ends["decoupled"][0] - ends["decoupled"][1]).abs(), 0.05),
        a_penalty_does_not=at_least((ends["penalty"][0] - ends["penalty"][1]).abs(), 0.5),
    )


@claim("Z3.14")
def every_example_is_validated_once() -> Evidence:
    """Folds are disjoint, cover all, differ by one at most; their mean error picks the right degree (Zhao sec. 3)."""
    rounds = k_folds(23, 5, generator=torch.Generator().manual_seed(0))
    held = torch.cat([validation for _, validation in rounds])
    sizes = torch.tensor([len(validation) for _, validation in rounds])
    overlap = sum(int(torch.isin(train, validation).sum()) for train, validation in rounds)
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
        cover=close(held.sort().values, torch.arange(23)),
        disjoint=close(overlap, 0),
        sizes=at_most(sizes.max() - sizes.min(), 1),
        picks_the_cubic=close(best, 3, atol=1),
        training_would_not=at_most(by_degree[10].training_error, by_degree[3].training_error),
        too_simple_is_worse=at_least(by_degree[1].validation_error, 2 * by_degree[3].validation_error),
    )


@claim("B2.2-8")
def the_best_weights_come_before_the_last_epoch() -> Evidence:
    """A large net on few noisy points is best on held-out ones early; the restored net is that net (book sec. 2.2)."""
    torch.manual_seed(0)
    seen, held = (linear(size, (1.0,) + (0.0,) * 19, 0.0, noise=1.5, seed=seed) for size, seed in ((25, 0), (200, 1)))
    assert seen.y is not None
    assert held.y is not None
    net = nn.Sequential(nn.Linear(20, 200), nn.Tanh(), nn.Linear(200, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.0005)
    loss = nn.MSELoss()
    patient, never = EarlyStopping(patience=50), EarlyStopping(patience=10_000)
    trained, validated = [], []
    for _ in range(200):
        optimizer.zero_grad()
        error = loss(net(seen.x), seen.y)
        error.backward()
        optimizer.step()
        with torch.no_grad():
            validated.append(float(loss(net(held.x), held.y)))
        trained.append(float(error.detach()))
        patient.update(validated[-1], net)
        never.update(validated[-1], net)
    never.restore(net)
    with torch.no_grad():
        restored = float(loss(net(held.x), held.y))
    assert patient.stopped_at is not None
    return all_of(
        training_error_falls_on=close(trained[-1], min(trained), atol=0.001),
        validation_error_does_not=at_least(validated[-1], 1.1 * min(validated)),
        recorded=close(never.best_error, min(validated)),
        restored=close(restored, min(validated), rtol=1e-6),
        best_before_the_last=at_most(never.best_update, 199 - 50),
        stops_after_its_patience=close(patient.stopped_at - patient.best_update, 50),
        stopping_costs_little=at_most(patient.best_error, 1.1 * min(validated)),
    )
