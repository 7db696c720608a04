"""Things to touch: a ball in a bowl, and a race of optimisers (book chs. 1, 3)."""

from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.optim.adagrad import AdaGrad
from parnassus.optim.adam import Adam
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.momentum import Momentum, factor_per_step, heavy_ball, largest_stable_rate
from parnassus.optim.nesterov import Nesterov
from parnassus.optim.rmsprop import RMSProp
from parnassus.optim.sgd import SGD
from parnassus.optim.surfaces import beale, himmelblau, rosenbrock, saddle, valley
from parnassus.optim.trajectory import Factory, race
from parnassus.touch import Answer, Curves, Numbers, Path, Pick, Plane, Point, Real

STEPS = 80
ACROSS, UP = (-3.0, 3.0), (-2.0, 2.0)
LOST = 50.0  # times its first loss, a way has left the picture
FOUND = 1e-12  # a loss that is as good as none
BOWL = Plane(ACROSS, UP, torch.zeros(1, 2), across_name="θ₁, the flat direction", up_name="θ₂, the steep one")

SURFACES = {
    "a narrow valley": valley(),
    "Rosenbrock's banana": rosenbrock(),
    "Beale's cliffs": beale(),
    "Himmelblau's four hollows": himmelblau(),
    "a saddle": saddle(),
}
PICTURE = Plane((-1.0, 1.0), (-1.0, 1.0), torch.zeros(0, 2), across_name="left to right", up_name="bottom to top")
NEAR = 1e-2  # as near to the least value as counts for having arrived


@probe()
def roll_down_a_bowl(
    start: Annotated[tuple[float, float], Point("start", BOWL)] = (-2.5, 1.0),
    rate: Annotated[float, Real("learning rate η", 1e-3, 3.0, log=True)] = 0.15,
    momentum: Annotated[float, Real("momentum μ", 0.0, 0.99)] = 0.7,
    ratio: Annotated[float, Real("steep curvature over flat", 1.0, 100.0, log=True)] = 12.0,
) -> list[Answer]:
    """Gradient descent in a long bowl, with and without momentum (book secs. 1.3, 3.2).

    Raise the learning rate until the way zigzags, then until it leaves the bowl: the steep direction sets the limit
    2/β, the flat one the speed. Then let momentum carry the ball along the flat direction.
    """
    beta = torch.tensor([1.0, ratio], dtype=torch.float64)

    def bowl(theta: Tensor) -> Tensor:
        return (beta * theta.square()).sum(-1) / 2

    begin = torch.tensor(start, dtype=torch.float64)
    ways = {"gradient descent": gradient_descent(bowl, begin, rate=rate, steps=STEPS)}
    if momentum > 0:
        ways["with momentum"] = heavy_ball(bowl, begin, rate=rate, momentum=momentum, steps=STEPS)
    shown = {name: way[: _end(bowl(way))] for name, way in ways.items()}
    across, up = torch.linspace(*ACROSS, 61), torch.linspace(*UP, 41)
    levels = bowl(torch.stack(torch.meshgrid(across, up, indexing="xy"), -1).double())
    losses = {name: (_counted(way), bowl(way).clamp(min=FOUND).tolist()) for name, way in shown.items()}
    return [
        Path("The way down", shown, across, up, levels, about="½ (θ₁² + β θ₂²), least at the origin."),
        Curves("The loss on the way", losses, x_label="step", y_label="loss", log_y=True),
        Numbers("What theory says", _rates(beta, rate, momentum, shown), about="Factors are of the distance, a step."),
    ]


@probe()
def race_optimisers(
    surface: Annotated[int, Pick("surface", tuple(SURFACES))] = 0,
    start: Annotated[tuple[float, float], Point("start, as a place in the picture", PICTURE)] = (-0.75, 0.6),
    rate: Annotated[float, Real("rate η of descent, momentum and Nesterov", 1e-5, 1.0, log=True)] = 0.06,
    size: Annotated[float, Real("step size η of AdaGrad, RMSProp and Adam", 1e-3, 2.0, log=True)] = 0.3,
    momentum: Annotated[float, Real("momentum μ, and β₁ of Adam", 0.0, 0.99)] = 0.9,
) -> list[Answer]:
    """Six optimisers down the same surface from the same start (book secs. 3.2-3.3).

    Raise the rate of the first three until one leaves the picture: which one, and why? The step size of the others is
    a length, about the same on every surface. On the saddle, start exactly in the middle of the left edge.
    """
    name, cost = list(SURFACES.items())[surface]
    low, high = torch.tensor([cost.across, cost.up], dtype=torch.float64).unbind(1)
    begin = low + (high - low) * (torch.tensor(start, dtype=torch.float64) + 1) / 2
    racers: dict[str, Factory] = {
        "gradient descent": partial(SGD, lr=rate),
        "momentum": partial(Momentum, lr=rate, momentum=momentum),
        "Nesterov": partial(Nesterov, lr=rate),
        "AdaGrad": partial(AdaGrad, lr=size),
        "RMSProp": partial(RMSProp, lr=size, alpha=0.9),
        "Adam": partial(Adam, lr=size, betas=(momentum, 0.99)),
    }
    ways = dict(zip(racers, race(cost, begin, list(racers.values()), steps=STEPS), strict=True))
    gaps = {racer: cost(way) - cost.least for racer, way in ways.items()}
    ends = {racer: _end(gap) for racer, gap in gaps.items()}
    shown = {racer: way[: ends[racer]] for racer, way in ways.items()}
    losses = {racer: (_counted(way), gaps[racer][: len(way)].clamp(min=FOUND).tolist()) for racer, way in shown.items()}
    across, up, levels = cost.levels(61, 61)
    return [
        Path("The ways down", shown, across, up, (levels - cost.least).clamp(min=NEAR).log(), about=f"On {name}."),
        Curves("What is left to gain", losses, x_label="step", y_label="above the least value", log_y=True),
        Numbers(
            f"Steps until the value stays within {NEAR:g} of the least",
            {racer: _arrival(gap, ends[racer]) for racer, gap in gaps.items()},
            about=f"Of {STEPS} steps.",
        ),
    ]


def _arrival(gaps: Tensor, end: int) -> float | str:
    """The first step from which on the way stays near the least value."""
    away = (~(gaps <= NEAR)).nonzero()[:, 0]
    last = int(away[-1]) if len(away) else -1
    if last + 1 < len(gaps):
        return float(last + 1)
    return f"left after {end - 1}" if end < len(gaps) else "not yet"


def _counted(way: Tensor) -> list[float]:
    return [float(step) for step in range(len(way))]


def _end(losses: Tensor) -> int:
    """How many places to show: up to the first that is lost, or to where the way has come to rest."""
    lost = (~(losses <= LOST * losses[0])).nonzero()[:, 0]
    moving = (losses >= FOUND).nonzero()[:, 0]
    rest = int(moving[-1]) + 2 if len(moving) else 1
    return min(int(lost[0]) + 1 if len(lost) else len(losses), rest, len(losses))


def _rates(beta: Tensor, rate: float, momentum: float, shown: dict[str, Tensor]) -> dict[str, float | str]:
    """The limits of the learning rate, and the factor a step of each way, predicted and measured."""
    steepest = float(beta.max())
    numbers: dict[str, float | str] = {"largest stable rate, 2/β": largest_stable_rate(steepest)}
    if momentum > 0:
        numbers["with momentum, 2 (1 + μ)/β"] = largest_stable_rate(steepest, momentum)
    for (name, way), mu in zip(shown.items(), (0.0, momentum), strict=False):
        moving = beta[way[0] != 0] if bool(way[0].any()) else beta
        numbers[f"{name}, factor predicted"] = float(factor_per_step(moving, rate=rate, momentum=mu).max())
        if len(way) >= 3:
            numbers[f"{name}, factor measured"] = _measured(way)
    return numbers


def _measured(way: Tensor) -> float:
    """The factor a step by which the distance changed from the second third of the way to the last."""
    distance = torch.linalg.vector_norm(way, dim=1)
    third = len(way) // 3
    before, after = distance[-2 * third : -third].max(), distance[-third:].max()  # the most: a swing passes near 0
    return float((after / before) ** (1 / third))
