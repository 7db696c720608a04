"""Points on the unit circle, a one-dimensional manifold of data for denoisers (book sec. 4.4)."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor


def circle_points(count: int) -> Float[Tensor, "{count} 2"]:
    """Points at equal angles on the unit circle, in float64."""
    angle = torch.arange(count, dtype=torch.float64) * 2 * pi / count
    return torch.stack([angle.cos(), angle.sin()], 1)


def distance_to_circle(x: Float[Tensor, "count 2"]) -> Float[Tensor, " count"]:
    """The distance of each point to the unit circle, |‖x‖ − 1|."""
    distance: Tensor = (torch.linalg.vector_norm(x, dim=1) - 1).abs()
    return distance
