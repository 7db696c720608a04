"""Probes: gradient descent on a quadratic, and optimisers compared on test surfaces (book chs. 1, 3)."""

from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.optim.landscapes.surfaces import beale, himmelblau, quadratic_valley, rosenbrock, saddle
from parnassus.optim.landscapes.trajectory import OptimizerFactory, optimizer_trajectories
from parnassus.optim.optimisers.adagrad import AdaGrad
from parnassus.optim.optimisers.adam import Adam
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.optim.optimisers.momentum import Momentum, convergence_factor, heavy_ball, max_stable_rate
from parnassus.optim.optimisers.nesterov import Nesterov
from parnassus.optim.optimisers.rmsprop import RMSProp
from parnassus.optim.optimisers.sgd import SGD
from parnassus.widgets import Answer, Curves, FloatSlider, Numbers, Plane, PointPicker, Select, Trajectories

STEPS = 80
X_RANGE, Y_RANGE = (-3.0, 3.0), (-2.0, 2.0)
DIVERGED = 50.0  # a trajectory is cut where its loss exceeds this multiple of the initial loss
MIN_LOSS = 1e-12  # losses below this are treated as 0
QUADRATIC_PLANE = Plane(X_RANGE, Y_RANGE, torch.zeros(1, 2), x_label="θ₁, low curvature", y_label="θ₂, high curvature")

SURFACES = {
    "narrow valley": quadratic_valley(),
    "Rosenbrock function": rosenbrock(),
    "Beale function": beale(),
    "Himmelblau function": himmelblau(),
    "saddle point": saddle(),
}
SURFACE_PLANE = Plane((-1.0, 1.0), (-1.0, 1.0), torch.zeros(0, 2), x_label="left to right", y_label="bottom to top")
TOLERANCE = 1e-2  # a trajectory has converged where its value stays within this of the minimum


@probe()
def gradient_descent_on_quadratic(
    start: Annotated[tuple[float, float], PointPicker("start", QUADRATIC_PLANE)] = (-2.5, 1.0),
    learning_rate: Annotated[float, FloatSlider("learning rate η", 1e-3, 3.0, log=True)] = 0.15,
    momentum: Annotated[float, FloatSlider("momentum μ", 0.0, 0.99)] = 0.7,
    condition_number: Annotated[float, FloatSlider("condition number", 1.0, 100.0, log=True)] = 12.0,
) -> list[Answer]:
    """Gradient descent on a quadratic, with and without momentum (book secs. 1.3, 3.2).

    Increase the learning rate until the trajectory zigzags, then until it diverges: the high curvature β sets the limit
    2/β, the low curvature the speed. Momentum then speeds up the direction of low curvature.
    """
    beta = torch.tensor([1.0, condition_number], dtype=torch.float64)

    def loss(theta: Tensor) -> Tensor:
        return (beta * theta.square()).sum(-1) / 2

    theta0 = torch.tensor(start, dtype=torch.float64)
    paths = {"gradient descent": gradient_descent(loss, theta0, learning_rate=learning_rate, steps=STEPS)}
    if momentum > 0:
        paths["with momentum"] = heavy_ball(loss, theta0, learning_rate=learning_rate, momentum=momentum, steps=STEPS)
    visible = {name: path[: _visible_length(loss(path))] for name, path in paths.items()}
    x, y = torch.linspace(*X_RANGE, 61), torch.linspace(*Y_RANGE, 41)
    levels = loss(torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).double())
    losses = {name: (_step_numbers(path), loss(path).clamp(min=MIN_LOSS).tolist()) for name, path in visible.items()}
    return [
        Trajectories("Trajectories", visible, x, y, levels, about="Loss ½ (θ₁² + β θ₂²), minimum at the origin."),
        Curves("Loss", losses, x_label="step", y_label="loss", log_y=True),
        Numbers(
            "Convergence rates",
            _convergence_rates(beta, learning_rate, momentum, visible),
            about="Factors are those of the distance to the minimum, per step.",
        ),
    ]


@probe()
def compare_optimisers(
    surface: Annotated[int, Select("surface", tuple(SURFACES))] = 0,
    start: Annotated[tuple[float, float], PointPicker("start, relative to the plot window", SURFACE_PLANE)] = (
        -0.75,
        0.6,
    ),
    learning_rate: Annotated[
        float, FloatSlider("learning rate of SGD, momentum and Nesterov", 1e-5, 1.0, log=True)
    ] = 0.06,
    adaptive_rate: Annotated[
        float, FloatSlider("learning rate of AdaGrad, RMSProp and Adam", 1e-3, 2.0, log=True)
    ] = 0.3,
    momentum: Annotated[float, FloatSlider("momentum μ, and β₁ of Adam", 0.0, 0.99)] = 0.9,
) -> list[Answer]:
    """Six optimisers on the same surface from the same start (book secs. 3.2-3.3).

    Increase the learning rate of the first three until one diverges. The learning rate of the other three is a step
    length and transfers between surfaces. On the saddle point, start exactly in the middle of the left edge.
    """
    name, cost = list(SURFACES.items())[surface]
    low, high = torch.tensor([cost.x_range, cost.y_range], dtype=torch.float64).unbind(1)
    theta0 = low + (high - low) * (torch.tensor(start, dtype=torch.float64) + 1) / 2
    optimizers: dict[str, OptimizerFactory] = {
        "gradient descent": partial(SGD, lr=learning_rate),
        "momentum": partial(Momentum, lr=learning_rate, momentum=momentum),
        "Nesterov": partial(Nesterov, lr=learning_rate),
        "AdaGrad": partial(AdaGrad, lr=adaptive_rate),
        "RMSProp": partial(RMSProp, lr=adaptive_rate, alpha=0.9),
        "Adam": partial(Adam, lr=adaptive_rate, betas=(momentum, 0.99)),
    }
    trajectories = optimizer_trajectories(cost, theta0, list(optimizers.values()), steps=STEPS)
    paths = dict(zip(optimizers, trajectories, strict=True))
    gaps = {each: cost(path) - cost.minimum for each, path in paths.items()}
    lengths = {each: _visible_length(gap) for each, gap in gaps.items()}
    visible = {each: path[: lengths[each]] for each, path in paths.items()}
    losses = {
        each: (_step_numbers(path), gaps[each][: len(path)].clamp(min=MIN_LOSS).tolist())
        for each, path in visible.items()
    }
    x, y, levels = cost.evaluate_grid(61, 61)
    return [
        Trajectories(
            "Optimiser trajectories",
            visible,
            x,
            y,
            (levels - cost.minimum).clamp(min=TOLERANCE).log(),
            about=f"Surface: {name}.",
        ),
        Curves("Distance to the minimum value", losses, x_label="step", y_label="C(θ) − min C", log_y=True),
        Numbers(
            f"Steps until C(θ) − min C stays below {TOLERANCE:g}",
            {each: _convergence_step(gap, lengths[each]) for each, gap in gaps.items()},
            about=f"Of {STEPS} steps.",
        ),
    ]


def _convergence_step(gaps: Tensor, length: int) -> float | str:
    """The first step from which on the value stays near the minimum."""
    outside = (~(gaps <= TOLERANCE)).nonzero()[:, 0]
    last = int(outside[-1]) if len(outside) else -1
    if last + 1 < len(gaps):
        return float(last + 1)
    return f"diverged after {length - 1}" if length < len(gaps) else "not converged"


def _step_numbers(path: Tensor) -> list[float]:
    return [float(step) for step in range(len(path))]


def _visible_length(losses: Tensor) -> int:
    """The number of points to plot: up to the first diverged one, or to where the trajectory has converged."""
    diverged = (~(losses <= DIVERGED * losses[0])).nonzero()[:, 0]
    moving = (losses >= MIN_LOSS).nonzero()[:, 0]
    converged = int(moving[-1]) + 2 if len(moving) else 1
    return min(int(diverged[0]) + 1 if len(diverged) else len(losses), converged, len(losses))


def _convergence_rates(
    beta: Tensor, learning_rate: float, momentum: float, paths: dict[str, Tensor]
) -> dict[str, float | str]:
    """The largest stable learning rates, and the predicted and measured factors per step of each method."""
    largest = float(beta.max())
    numbers: dict[str, float | str] = {"largest stable rate, 2/β": max_stable_rate(largest)}
    if momentum > 0:
        numbers["with momentum, 2 (1 + μ)/β"] = max_stable_rate(largest, momentum)
    for (name, path), mu in zip(paths.items(), (0.0, momentum), strict=False):
        active = beta[path[0] != 0] if bool(path[0].any()) else beta
        numbers[f"{name}, predicted factor"] = float(
            convergence_factor(active, learning_rate=learning_rate, momentum=mu).max()
        )
        if len(path) >= 3:
            numbers[f"{name}, measured factor"] = _measure_factor(path)
    return numbers


def _measure_factor(path: Tensor) -> float:
    """The factor per step by which the distance changed from the second third of the iterates to the last."""
    distance = torch.linalg.vector_norm(path, dim=1)
    third = len(path) // 3
    before, after = distance[-2 * third : -third].max(), distance[-third:].max()  # maxima: oscillations pass near 0
    return float((after / before) ** (1 / third))
