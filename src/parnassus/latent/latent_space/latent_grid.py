"""Grids of codes in a two-dimensional latent space, decoded to one image (book sec. 4.5)."""

import torch
from jaxtyping import Float
from torch import Tensor


def latent_range(z: Float[Tensor, "count 2"], *, tail: float = 0.01) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of both coordinates that hold most codes: from the quantile `tail` to the quantile 1 − `tail`.

    The text fixes (−5, 10) × (−10, 5), which fits one training run only.
    """
    if not 0 <= tail < 0.5:
        raise ValueError(f"tail must lie in [0, 0.5); got tail={tail}")
    levels = torch.tensor([tail, 1 - tail], dtype=z.dtype, device=z.device)
    (x0, x1), (y0, y1) = torch.quantile(z, levels, dim=0).T.tolist()
    return (x0, x1), (y0, y1)


def latent_grid(
    horizontal: tuple[float, float], vertical: tuple[float, float], *, count: int = 12
) -> Float[Tensor, "points 2"]:
    """A count × count grid of codes in reading order: the largest second coordinate comes first (book fig. 4.3)."""
    if count < 2:
        raise ValueError(f"count must be at least 2 to span a range; got count={count}")
    columns = torch.linspace(*horizontal, count)
    rows = torch.linspace(*vertical, count).flip(0)
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack([x, y], -1).reshape(-1, 2)


def tile_images(images: Float[Tensor, "points height width"], *, columns: int) -> Float[Tensor, "tall wide"]:
    """One image from equally sized tiles in reading order (book fig. 4.3)."""
    if len(images) % columns:
        raise ValueError(f"columns must divide the number of images; got columns={columns}, images={len(images)}")
    _, height, width = images.shape
    tiles = images.reshape(-1, columns, height, width)
    return tiles.permute(0, 2, 1, 3).reshape(-1, columns * width)
