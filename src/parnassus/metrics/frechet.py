"""Fréchet distance between the Gaussian approximations of two feature sets (FID's formula, Heusel et al. 2017)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays


def gaussian_frechet_distance(
    mean_1: Float[Tensor, " d"],
    covariance_1: Float[Tensor, "d d"],
    mean_2: Float[Tensor, " d"],
    covariance_2: Float[Tensor, "d d"],
) -> Float[Tensor, ""]:
    """‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½), the squared 2-Wasserstein distance of two Gaussians.

    Computed from eigenvalues of symmetric matrices, so singular covariances are allowed.
    """
    values, vectors = torch.linalg.eigh(covariance_1)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.mT
    overlap = torch.linalg.eigvalsh(root @ covariance_2 @ root).clamp(min=0).sqrt().sum()
    spread = covariance_1.trace() + covariance_2.trace() - 2 * overlap
    distance: Tensor = (mean_1 - mean_2).square().sum() + spread.clamp(min=0)
    return distance


@torch.no_grad()
@accepts_arrays
def frechet_distance(real: Float[Tensor, "count_x d"], samples: Float[Tensor, "count_y d"]) -> float:
    """Fréchet distance of the Gaussians with the moments of these rows (Heusel et al. 2017).

    The estimate is biased upwards by O(1/number of rows): compare only values from equal numbers of rows.
    """
    if min(len(real), len(samples)) < 2:
        raise ValueError(f"a covariance needs at least two rows; got {len(real)} real and {len(samples)} samples")
    moments = [(rows.mean(0), torch.atleast_2d(rows.mT.cov())) for rows in (real.double(), samples.double())]
    return float(gaussian_frechet_distance(*moments[0], *moments[1]))
