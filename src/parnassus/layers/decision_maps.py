"""Pictures of what a network says over the plane: a colour for each place, and dots for the data.

Row 0 of a picture is its top; the plane is the square from −reach to reach.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

DOT = (1.9, 3.0)
"""The radius of a dot and of its rim, in pixels."""


def plane(reach: float, side: int) -> Float[Tensor, "places 2"]:
    """The middles of side × side pixels as places (x₁, x₂), row by row from the top left."""
    line = reach * ((2 * torch.arange(side) + 1) / side - 1)
    up, across = torch.meshgrid(line.flip(0), line, indexing="ij")
    return torch.stack([across, up], -1).reshape(-1, 2)


def tinted(
    share: Float[Tensor, "*batch height width"], colours: Float[Tensor, "2 3"]
) -> Float[Tensor, "*batch 3 height width"]:
    """Colour 0 where the share is 0, colour 1 where it is 1, white where it is ½."""
    share = share.unsqueeze(-3).clamp(0, 1)
    ends = torch.where(share < 0.5, colours[0, :, None, None], colours[1, :, None, None])
    return 1 - (2 * share - 1).abs() * (1 - ends)


def dotted(
    images: Float[Tensor, "*batch 3 side side"],
    points: Float[Tensor, "count 2"],
    labels: Int[Tensor, " count"],
    *,
    colours: Float[Tensor, "2 3"],
    reach: float,
) -> Float[Tensor, "*batch 3 side side"]:
    """The same pictures with a dot for each point in the colour of its class, with a white rim around it."""
    side = images.shape[-1]
    distance, nearest = torch.cdist(plane(reach, side), points).min(1)
    distance = (distance * side / (2 * reach)).view(side, side)  # in pixels
    colour = colours[labels[nearest]].T.reshape(3, side, side)
    core, rim = ((radius + 0.5 - distance).clamp(0, 1) for radius in DOT)
    return core * colour + (1 - core) * (rim + (1 - rim) * images)
