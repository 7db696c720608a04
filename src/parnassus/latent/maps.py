"""Maps of a latent space: where codes lie, how well they use it, what it decodes to (book sec. 4.5)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


def centre_offset(z: Float[Tensor, "count latent"]) -> Float[Tensor, ""]:
    """‖z̄‖ over the root-mean-square distance of codes from z̄; 0 when centred."""
    distance: Tensor = torch.linalg.vector_norm(z.mean(0))
    return distance / _spread(z)


def anisotropy(z: Float[Tensor, "count latent"]) -> Float[Tensor, ""]:
    """Largest over smallest standard deviation among the principal axes; 1 when round."""
    deviations: Tensor = torch.linalg.svdvals(z - z.mean(0))
    return deviations[0] / deviations[-1]


def coverage(z: Float[Tensor, "count 2"], *, cells: int = 20) -> Float[Tensor, ""]:
    """Share of a cells × cells raster over the codes' bounding box that holds at least one code."""
    low, high = z.amin(0), z.amax(0)
    index = ((z - low) / (high - low) * cells).long().clamp(max=cells - 1)
    taken = torch.zeros(cells, cells, device=z.device)
    taken[index[:, 0], index[:, 1]] = 1
    return taken.mean()


def neighbour_accuracy(
    z: Float[Tensor, "count latent"], labels: Int[Tensor, " count"], *, neighbours: int = 10
) -> Float[Tensor, ""]:
    """Share of codes whose nearest other codes vote for their own label: low when classes overlap."""
    if not 1 <= neighbours < len(z):
        raise ValueError(f"neighbours must lie between 1 and count − 1; got neighbours={neighbours}, count={len(z)}")
    distance = torch.cdist(z, z).fill_diagonal_(torch.inf)
    votes = labels[distance.topk(neighbours, largest=False).indices]
    return (votes.mode(1).values == labels).float().mean()


@dataclass(frozen=True)
class Holes:
    """Points half way between two codes, and how far each is from the nearest code in units of the spread."""

    points: Float[Tensor, "count latent"]
    depth: Float[Tensor, " count"]

    def deepest(self, count: int) -> Float[Tensor, "count latent"]:
        return self.points[self.depth.topk(count).indices]


def holes(z: Float[Tensor, "count latent"], *, pairs: int = 1_000, seed: int = 0) -> Holes:
    """Walk half way from one code to another: in a well used space the place is inhabited.

    Mid-points lie in the convex hull of the codes, so that the empty corners of a box do not count as holes.
    """
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randint(len(z), (2, pairs), generator=generator).to(z.device)
    points = (z[first] + z[second]) / 2
    return Holes(points, torch.cdist(points, z).amin(1) / _spread(z))


def latent_range(z: Float[Tensor, "count 2"], *, tail: float = 0.01) -> tuple[tuple[float, float], tuple[float, float]]:
    """A window around most codes: on each axis the quantiles `tail` and 1 − `tail`.

    The text fixes (−5, 10) × (−10, 5), which suits one run; codes of another run lie elsewhere.
    """
    if not 0 <= tail < 0.5:
        raise ValueError(f"tail must lie in [0, 0.5); got tail={tail}")
    levels = torch.tensor([tail, 1 - tail], dtype=z.dtype, device=z.device)
    (x0, x1), (y0, y1) = torch.quantile(z, levels, dim=0).T.tolist()
    return (x0, x1), (y0, y1)


def latent_grid(
    horizontal: tuple[float, float], vertical: tuple[float, float], *, count: int = 12
) -> Float[Tensor, "points 2"]:
    """A count × count raster of codes in reading order: the largest second coordinate comes first (book fig. 4.3)."""
    if count < 2:
        raise ValueError(f"count must be at least 2 to span a range; got count={count}")
    columns = torch.linspace(*horizontal, count)
    rows = torch.linspace(*vertical, count).flip(0)
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack([x, y], -1).reshape(-1, 2)


def mosaic(images: Float[Tensor, "points height width"], *, columns: int) -> Float[Tensor, "tall wide"]:
    """Tiles in reading order joined to one picture (book fig. 4.3)."""
    if len(images) % columns:
        raise ValueError(f"columns must divide the number of images; got columns={columns}, images={len(images)}")
    _, height, width = images.shape
    tiles = images.reshape(-1, columns, height, width)
    return tiles.permute(0, 2, 1, 3).reshape(-1, columns * width)


def _spread(z: Tensor) -> Tensor:
    return (z - z.mean(0)).square().sum(1).mean().sqrt()
