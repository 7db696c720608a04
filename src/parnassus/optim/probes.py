"""Things to touch: a ball in a bowl (book chs. 1, 3)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.momentum import factor_per_step, heavy_ball, largest_stable_rate
from parnassus.touch import Answer, Curves, Numbers, Path, Plane, Point, Real

STEPS = 80
ACROSS, UP = (-3.0, 3.0), (-2.0, 2.0)
LOST = 50.0  # times its first loss, a way has left the picture
FOUND = 1e-12  # a loss that is as good as none
BOWL = Plane(ACROSS, UP, torch.zeros(1, 2), across_name="θ₁, the flat direction", up_name="θ₂, the steep one")


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
