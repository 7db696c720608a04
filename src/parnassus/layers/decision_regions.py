"""Images of decision regions in the plane: coloured class probabilities with the data points on top.

Row 0 of an image is its top; the image shows the square from −limit to limit.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

DOT_RADII = (1.9, 3.0)
"""Radii of a point and of its white rim, in pixels."""


def pixel_grid(limit: float, side: int) -> Float[Tensor, "pixels 2"]:
    """Coordinates (x₁, x₂) of the centres of side × side pixels, row by row from the top left."""
    line = limit * ((2 * torch.arange(side) + 1) / side - 1)
    x2, x1 = torch.meshgrid(line.flip(0), line, indexing="ij")
    return torch.stack([x1, x2], -1).reshape(-1, 2)


def diverging_colours(
    probability: Float[Tensor, "*batch height width"], colours: Float[Tensor, "2 3"]
) -> Float[Tensor, "*batch 3 height width"]:
    """Colour 0 at probability 0, colour 1 at 1, white at ½."""
    probability = probability.unsqueeze(-3).clamp(0, 1)
    ends = torch.where(probability < 0.5, colours[0, :, None, None], colours[1, :, None, None])
    return 1 - (2 * probability - 1).abs() * (1 - ends)


def draw_points(
    images: Float[Tensor, "*batch 3 side side"],
    points: Float[Tensor, "count 2"],
    labels: Int[Tensor, " count"],
    *,
    colours: Float[Tensor, "2 3"],
    limit: float,
) -> Float[Tensor, "*batch 3 side side"]:
    """The images with a dot for each point in the colour of its class, with a white rim."""
    side = images.shape[-1]
    distance, nearest = torch.cdist(pixel_grid(limit, side), points).min(1)
    distance = (distance * side / (2 * limit)).view(side, side)  # in pixels
    colour = colours[labels[nearest]].T.reshape(3, side, side)
    core, rim = ((radius + 0.5 - distance).clamp(0, 1) for radius in DOT_RADII)
    return core * colour + (1 - core) * (rim + (1 - rim) * images)
