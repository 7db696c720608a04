"""A normal pair, cut where you look (Diehl ex. 5.6)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.probability.conditioning import condition
from parnassus.probability.gaussian import Gaussian
from parnassus.probability.normal import normal_density
from parnassus.touch import Answer, Curves, Numbers, Path, Plane, Point, Real

REACH = 4.0
SIDES = (-REACH, REACH)
PLANE = Plane(SIDES, SIDES, torch.zeros(0, 2), across_name="X, hidden", up_name="Y, seen")


@probe()
def see_one_of_two(
    place: Annotated[tuple[float, float], Point("a place: y is seen, x is asked about", PLANE)] = (0.5, 1.5),
    correlation: Annotated[float, Real("correlation ρ of X and Y", -0.99, 0.99)] = 0.8,
    deviation: Annotated[float, Real("standard deviation of X", 0.3, 2.0)] = 1.0,
) -> list[Answer]:
    """A normal pair of which one coordinate is seen, and what is then known of the other (Diehl ex. 5.6).

    Move the cut up and down: the bell on it moves along a line and keeps its width. Then turn the correlation: at 0
    seeing Y says nothing, near ±1 it says nearly all.
    """
    covariance = torch.tensor([[deviation**2, correlation * deviation], [correlation * deviation, 1.0]]).double()
    joint = Gaussian(torch.zeros(2, dtype=torch.float64), covariance)
    asked, y = place
    given = condition(joint, torch.tensor([y], dtype=torch.float64), observed=[1])
    mean, left = float(given.mean), float(given.covariance)
    x, at = torch.linspace(-REACH, REACH, 161, dtype=torch.float64), torch.tensor(asked, dtype=torch.float64)
    numbers: dict[str, float | str] = {
        "y, what was seen": y,
        "E[X | y]": mean,
        "standard deviation of X before": deviation,
        "and once Y is seen": left**0.5,
        "share of the variance that Y explains, ρ²": f"{100 * correlation**2:.0f} %",
        f"p(x) at x = {asked:.2f}, before": float(normal_density(at, mean=0.0, variance=deviation**2)),
        "p(x | y) there": float(normal_density(at, mean=mean, variance=left)),
    }
    bells = {
        "nothing seen": normal_density(x, mean=0.0, variance=deviation**2),
        f"Y = {y:.2f} seen": normal_density(x, mean=mean, variance=left),
    }
    return [
        _plane(joint, y, mean, left**0.5),
        Curves(
            "What is known of X",
            {name: (x.tolist(), bell.tolist()) for name, bell in bells.items()},
            x_label="X",
            y_label="density",
            marked=mean,
        ),
        Numbers("Before and after", numbers, about="What is left does not depend on y."),
    ]


def _plane(joint: Gaussian, y: float, mean: float, deviation: float) -> Path:
    """The pair's level lines, the cut, where E[X | y] goes with y, and one deviation to either side of it."""
    side = torch.linspace(*SIDES, 81, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1)
    radius = (-2 * (joint.log_prob(grid) - joint.log_prob(joint.mean))).clamp(min=0).sqrt()
    ends = torch.tensor([[-REACH], [REACH]], dtype=torch.float64)
    middle = torch.cat([condition(joint, ends, observed=[1]).mean, ends], 1)
    return Path(
        "The pair, and the cut",
        {
            "E[X | y] for every y": middle,
            "Y = y": _segment(-REACH, REACH, y),
            "E[X | y] ± one deviation": _segment(max(-REACH, mean - deviation), min(REACH, mean + deviation), y),
        },
        side,
        side,
        radius,
        about="Level lines of the joint density. On the green part of the cut X now lies two times out of three.",
    )


def _segment(left: float, right: float, height: float) -> Tensor:
    return torch.tensor([[left, height], [right, height]], dtype=torch.float64)
