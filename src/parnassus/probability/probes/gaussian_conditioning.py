"""Conditional distribution of a bivariate Gaussian (Diehl ex. 5.6)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.probability.distributions.gaussian import Gaussian
from parnassus.probability.distributions.gaussian_conditioning import condition
from parnassus.probability.distributions.normal import normal_density
from parnassus.widgets import Answer, Curves, FloatSlider, Numbers, Plane, PointPicker, Trajectories

LIMIT = 4.0
RANGE = (-LIMIT, LIMIT)
PLANE = Plane(RANGE, RANGE, torch.zeros(0, 2), x_label="X, unobserved", y_label="Y, observed")


@probe()
def condition_gaussian_pair(
    point: Annotated[
        tuple[float, float], PointPicker("point (x, y): y is observed, densities are shown at x", PLANE)
    ] = (0.5, 1.5),
    correlation: Annotated[float, FloatSlider("correlation ρ of X and Y", -0.99, 0.99)] = 0.8,
    deviation: Annotated[float, FloatSlider("standard deviation of X", 0.3, 2.0)] = 1.0,
) -> list[Answer]:
    """The distribution of X given Y = y for a bivariate Gaussian (Diehl ex. 5.6).

    The conditional mean is linear in y and the conditional variance is constant. With correlation 0 observing Y has no
    effect; near ±1 it determines X almost completely.
    """
    covariance = torch.tensor([[deviation**2, correlation * deviation], [correlation * deviation, 1.0]]).double()
    joint = Gaussian(torch.zeros(2, dtype=torch.float64), covariance)
    x0, y = point
    conditional = condition(joint, torch.tensor([y], dtype=torch.float64), observed=[1])
    mean, variance = float(conditional.mean), float(conditional.covariance)
    x, x0_tensor = torch.linspace(-LIMIT, LIMIT, 161, dtype=torch.float64), torch.tensor(x0, dtype=torch.float64)
    numbers: dict[str, float | str] = {
        "observed y": y,
        "E[X | y]": mean,
        "standard deviation of X": deviation,
        "standard deviation of X given y": variance**0.5,
        "fraction of variance explained by Y, ρ²": f"{100 * correlation**2:.0f} %",
        f"p(x) at x = {x0:.2f}": float(normal_density(x0_tensor, mean=0.0, variance=deviation**2)),
        "p(x | y) at this x": float(normal_density(x0_tensor, mean=mean, variance=variance)),
    }
    densities = {
        "marginal": normal_density(x, mean=0.0, variance=deviation**2),
        f"given Y = {y:.2f}": normal_density(x, mean=mean, variance=variance),
    }
    return [
        _plane(joint, y, mean, variance**0.5),
        Curves(
            "Density of X",
            {name: (x.tolist(), density.tolist()) for name, density in densities.items()},
            x_label="X",
            y_label="density",
            marked=mean,
        ),
        Numbers("Marginal and conditional", numbers, about="The conditional variance does not depend on y."),
    ]


def _plane(joint: Gaussian, y: float, mean: float, deviation: float) -> Trajectories:
    """Contours of the joint density, the line Y = y, the regression line, and one standard deviation around it."""
    side = torch.linspace(*RANGE, 81, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1)
    radius = (-2 * (joint.log_prob(grid) - joint.log_prob(joint.mean))).clamp(min=0).sqrt()
    ends = torch.tensor([[-LIMIT], [LIMIT]], dtype=torch.float64)
    regression = torch.cat([condition(joint, ends, observed=[1]).mean, ends], 1)
    return Trajectories(
        "Joint density",
        {
            "E[X | y] for every y": regression,
            "Y = y": _segment(-LIMIT, LIMIT, y),
            "E[X | y] ± one standard deviation": _segment(
                max(-LIMIT, mean - deviation), min(LIMIT, mean + deviation), y
            ),
        },
        side,
        side,
        radius,
        about="Contours of the joint density. X lies in the green interval with probability about 2/3 given y.",
    )


def _segment(left: float, right: float, height: float) -> Tensor:
    return torch.tensor([[left, height], [right, height]], dtype=torch.float64)
