"""Metrics of a latent space: centring, anisotropy, coverage, class overlap, holes (book sec. 4.5)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays


def centre_offset(z: Float[Tensor, "count latent"]) -> Float[Tensor, ""]:
    """‖z̄‖ divided by the root mean square distance of the codes from z̄; 0 if centred."""
    distance: Tensor = torch.linalg.vector_norm(z.mean(0))
    return distance / _rms_distance(z)


def anisotropy(z: Float[Tensor, "count latent"]) -> Float[Tensor, ""]:
    """Ratio of the largest to the smallest standard deviation along the principal axes; 1 if isotropic."""
    deviations: Tensor = torch.linalg.svdvals(z - z.mean(0))
    return deviations[0] / deviations[-1]


def grid_coverage(z: Float[Tensor, "count 2"], *, cells: int = 20) -> Float[Tensor, ""]:
    """The fraction of the cells × cells grid over the codes' bounding box that holds at least one code."""
    low, high = z.amin(0), z.amax(0)
    index = ((z - low) / (high - low) * cells).long().clamp(max=cells - 1)
    is_occupied = torch.zeros(cells, cells, device=z.device)
    is_occupied[index[:, 0], index[:, 1]] = 1
    return is_occupied.mean()


@accepts_arrays
def neighbour_accuracy(
    z: Float[Tensor, "count latent"], labels: Int[Tensor, " count"], *, neighbours: int = 10
) -> Float[Tensor, ""]:
    """The accuracy of k-nearest-neighbour classification among the codes: low when classes overlap."""
    if not 1 <= neighbours < len(z):
        raise ValueError(f"neighbours must lie between 1 and count − 1; got neighbours={neighbours}, count={len(z)}")
    distance = _distances(z, z).fill_diagonal_(torch.inf)
    votes = labels[distance.topk(neighbours, largest=False).indices]
    return (votes.mode(1).values == labels).float().mean()


@dataclass(frozen=True)
class LatentHoles:
    """Midpoints of pairs of codes, and their distance to the nearest code relative to the codes' standard deviation."""

    points: Float[Tensor, "count latent"]
    depth: Float[Tensor, " count"]

    def deepest(self, count: int) -> Float[Tensor, "count latent"]:
        return self.points[self.depth.topk(count).indices]


def find_holes(z: Float[Tensor, "count latent"], *, pairs: int = 1_000, seed: int = 0) -> LatentHoles:
    """The midpoints of random pairs of codes: in a well-used latent space they are close to other codes.

    Midpoints lie in the convex hull of the codes, so that empty corners of a bounding box are not treated as holes.
    """
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randint(len(z), (2, pairs), generator=generator).to(z.device)
    points = (z[first] + z[second]) / 2
    return LatentHoles(points, _distances(points, z).amin(1) / _rms_distance(z))


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Without products, in which codes far from the origin lose small distances to rounding."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def _rms_distance(z: Tensor) -> Tensor:
    return (z - z.mean(0)).square().sum(1).mean().sqrt()
