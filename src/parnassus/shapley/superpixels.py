"""Images explained by groups of pixels: square tiles, or superpixels that keep to what is seen (book sec. 17.0).

A single pixel says little, and there are many: the players are groups of them, given as a map (height, width) from each
pixel to the number of its group. What stands in for a missing group is said by images of the same shape: some of the
data (then the worth is a mean over them), their mean, or the explained image itself, `blurred`.
"""

from math import ceil

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import Model, as_model


def masked_images(
    predictor: object,
    stand_ins: Float[Tensor, "others channels height width"],
    labels: Int[Tensor, "rows columns"],
) -> Interventional:
    """The game of a model of images: groups that are not known come from `stand_ins`.

    `explain(masked_images(…), images.flatten(1), budget)` explains images (rows, channels, height, width).
    """
    if stand_ins.shape[2:] != labels.shape:
        raise ValueError(
            f"groups and images must have one size; got {tuple(labels.shape)} and {tuple(stand_ins.shape[2:])}"
        )
    channels, height, width = stand_ins.shape[1:]
    groups = pixel_groups(labels, channels).to(stand_ins.device)
    return Interventional(of_images(predictor, (channels, height, width)), stand_ins.flatten(1), groups)


def of_images(predictor: object, shape: tuple[int, int, int]) -> Model:
    """A model of images (rows, channels, height, width) as one of rows of pixels."""
    model = as_model(predictor)
    return lambda x: model(x.unflatten(1, shape))


def pixel_groups(labels: Int[Tensor, "height width"], channels: int) -> Bool[Tensor, "players features"]:
    """Which of channels · height · width features belong to each group: all channels of a pixel go with it."""
    present = labels.unique().tolist()
    if present != list(range(len(present))):
        raise ValueError(f"groups must be numbered 0, 1, 2, … without gaps; got {present[:20]}")
    return (labels.flatten() == torch.arange(len(present), device=labels.device)[:, None]).repeat(1, channels)


def painted(
    values: Float[Tensor, "*rows players"], labels: Int[Tensor, "height width"]
) -> Float[Tensor, "*rows height width"]:
    """Parts of groups as pictures: every pixel has the part of its group."""
    return values[..., labels.to(values.device)]


def blurred(
    images: Float[Tensor, "rows channels height width"], spread: float
) -> Float[Tensor, "rows channels height width"]:
    """Images seen out of focus: a Gaussian of this standard deviation in pixels, edges continued."""
    if spread <= 0:
        raise ValueError(f"the spread of a blur must be positive; got spread={spread}")
    reach = ceil(3 * spread)
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / spread).square()).to(images)
    weights = weights / weights.sum()
    flat = images.flatten(0, 1)[:, None]
    flat = functional.conv2d(functional.pad(flat, (reach, reach, 0, 0), mode="replicate"), weights[None, None, None])
    flat = functional.conv2d(functional.pad(flat, (0, 0, reach, reach), mode="replicate"), weights[None, None, :, None])
    return flat.view_as(images)


def tiles(height: int, width: int, side: int) -> Int[Tensor, "height width"]:
    """Squares of `side` pixels, row by row; those at the right and lower edge may be cut."""
    if min(height, width, side) < 1:
        raise ValueError(f"an image and its tiles must have pixels; got {height=}, {width=}, {side=}")
    down, across = torch.arange(height) // side, torch.arange(width) // side
    return down[:, None] * ceil(width / side) + across


def superpixels(
    image: Float[Tensor, "channels height width"], count: int, *, compactness: float = 0.2, rounds: int = 10
) -> Int[Tensor, "height width"]:
    """About `count` connected groups of near pixels with like colours: SLIC (Achanta et al. 2012).

    k-means with the distance ‖Δcolour‖² + (compactness · ‖Δplace‖ / side)², begun on a grid of that side; colours are
    about from 0 to 1. The larger `compactness`, the more they look like tiles. Where a group falls apart its largest
    piece keeps the name, and the others go to their neighbours.
    """
    height, width = image.shape[1:]
    if not 1 <= count <= height * width or compactness <= 0 or rounds < 1:
        raise ValueError(
            f"there must be 1 to {height * width} superpixels, with positive compactness and rounds; "
            f"got {count=}, {compactness=}, {rounds=}"
        )
    side = (height * width / count) ** 0.5
    places = torch.cartesian_prod(torch.arange(height), torch.arange(width)).to(image) / side
    points = torch.cat([compactness * places, image.flatten(1).mT], 1)
    rows, columns = _evenly(height, side), _evenly(width, side)
    centres = points[(rows[:, None] * width + columns).flatten()]
    for _ in range(rounds):
        nearest = torch.cdist(points, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        sizes = torch.bincount(nearest, minlength=len(centres))[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
    return connected(nearest.view(height, width))


def _evenly(size: int, side: float) -> Int[Tensor, " places"]:
    """Pixels about `side` apart on a line of `size`."""
    count = max(1, round(size / side))
    return ((torch.arange(count) + 0.5) * size / count).long()


def connected(labels: Int[Tensor, "height width"]) -> Int[Tensor, "height width"]:
    """The same groups, numbered anew, each in one piece: smaller pieces go to what they touch."""
    piece = pieces(labels)
    size = piece.flatten().bincount(minlength=piece.numel())[piece]
    rank = size * piece.numel() - piece  # the larger one; of equal ones the first
    best = torch.zeros(int(labels.max()) + 1, dtype=rank.dtype, device=rank.device)
    best = best.scatter_reduce(0, labels.flatten(), rank.flatten(), "amax")
    owner = torch.where(rank == best[labels], labels, -1)
    while bool((owner < 0).any()):
        around = functional.pad(owner, (1, 1, 1, 1), value=-1)
        touched = torch.stack([around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]]).amax(0)
        owner = torch.where(owner < 0, touched, owner)
    numbered: Tensor = owner.unique(return_inverse=True)[1]
    return numbered


def pieces(labels: Int[Tensor, "height width"]) -> Int[Tensor, "height width"]:
    """Connected pieces of equal labels, each called by the number of its first pixel.

    Every pixel takes the least number that a neighbour of its own label has, then that of the pixel so numbered.
    """
    piece = torch.arange(labels.numel(), device=labels.device).view_as(labels)
    while True:
        least = piece.clone()
        for axis in (0, 1):
            alike = labels.diff(dim=axis) == 0
            before, after = least.narrow(axis, 0, alike.shape[axis]), least.narrow(axis, 1, alike.shape[axis])
            low = torch.minimum(before, after)
            before.copy_(torch.where(alike, low, before))
            after.copy_(torch.where(alike, torch.minimum(low, after), after))
        least = least.flatten()[least]
        if torch.equal(least, piece):
            return piece
        piece = least
