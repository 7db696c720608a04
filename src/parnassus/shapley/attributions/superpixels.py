"""Groups of pixels that serve as players: square tiles, and SLIC superpixels (book sec. 17.0)."""

from math import ceil

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def tiles(height: int, width: int, side: int) -> Int[Tensor, "height width"]:
    """Squares of `side` pixels, row by row; those at the right and lower edge may be cropped."""
    if min(height, width, side) < 1:
        raise ValueError(f"height, width and side must be positive; got {height=}, {width=}, {side=}")
    down, across = torch.arange(height) // side, torch.arange(width) // side
    return down[:, None] * ceil(width / side) + across


def superpixels(
    image: Float[Tensor, "channels height width"],
    num_segments: int,
    *,
    compactness: float = 0.2,
    num_iterations: int = 10,
) -> Int[Tensor, "height width"]:
    """About `num_segments` connected groups of neighbouring pixels of similar colour: SLIC (Achanta et al. 2012).

    k-means with the distance ‖Δcolour‖² + (compactness · ‖Δposition‖ / side)², initialised on a grid of that side, for
    colours of about 0 to 1. The larger `compactness`, the squarer the segments. Where a segment is disconnected, its
    largest component keeps the label, and the others join their neighbours.
    """
    height, width = image.shape[1:]
    if not 1 <= num_segments <= height * width or compactness <= 0 or num_iterations < 1:
        raise ValueError(
            f"there must be 1 to {height * width} superpixels, positive compactness and num_iterations; "
            f"got {num_segments=}, {compactness=}, {num_iterations=}"
        )
    side = (height * width / num_segments) ** 0.5
    positions = torch.cartesian_prod(torch.arange(height), torch.arange(width)).to(image) / side
    points = torch.cat([compactness * positions, image.flatten(1).mT], 1)
    rows, columns = _grid_centres(height, side), _grid_centres(width, side)
    centres = points[(rows[:, None] * width + columns).flatten()]
    for _ in range(num_iterations):
        nearest = torch.cdist(points, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        sizes = torch.bincount(nearest, minlength=len(centres))[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
    return enforce_connectivity(nearest.view(height, width))


def _grid_centres(size: int, side: float) -> Int[Tensor, " points"]:
    """Pixels about `side` apart on a line of `size`."""
    count = max(1, round(size / side))
    return ((torch.arange(count) + 0.5) * size / count).long()


def enforce_connectivity(labels: Int[Tensor, "height width"]) -> Int[Tensor, "height width"]:
    """The same segments, renumbered and connected: smaller components join segments that they touch."""
    component = connected_components(labels)
    size = component.flatten().bincount(minlength=component.numel())[component]
    rank = size * component.numel() - component  # by size; the first of equal ones
    best = torch.zeros(int(labels.max()) + 1, dtype=rank.dtype, device=rank.device)
    best = best.scatter_reduce(0, labels.flatten(), rank.flatten(), "amax")
    owner = torch.where(rank == best[labels], labels, -1)
    while bool((owner < 0).any()):
        around = functional.pad(owner, (1, 1, 1, 1), value=-1)
        touched = torch.stack([around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]]).amax(0)
        owner = torch.where(owner < 0, touched, owner)
    renumbered: Tensor = owner.unique(return_inverse=True)[1]
    return renumbered


def connected_components(labels: Int[Tensor, "height width"]) -> Int[Tensor, "height width"]:
    """Connected components of equal labels, each numbered by its first pixel.

    Every pixel takes the smallest number of its neighbours with the same label, then that of the pixel so numbered.
    """
    component = torch.arange(labels.numel(), device=labels.device).view_as(labels)
    while True:
        smallest = component.clone()
        for axis in (0, 1):
            same = labels.diff(dim=axis) == 0
            before, after = smallest.narrow(axis, 0, same.shape[axis]), smallest.narrow(axis, 1, same.shape[axis])
            low = torch.minimum(before, after)
            before.copy_(torch.where(same, low, before))
            after.copy_(torch.where(same, torch.minimum(low, after), after))
        smallest = smallest.flatten()[smallest]
        if torch.equal(smallest, component):
            return component
        component = smallest
