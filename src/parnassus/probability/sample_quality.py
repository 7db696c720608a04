"""How near drawn samples come to real ones, in a space of features: the numbers that papers print.

Each is a function of two matrices, real rows and drawn rows. What they mean depends on whose features those are and on
how many rows there are: `parnassus.convolution.feature_network` keeps both with the number.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.mmd import Cubic, unbiased_squared_mmd


class KernelDistance(NamedTuple):
    """The mean over subsets, and its standard error: not below what so few rows leave open, many subsets or not."""

    value: float
    error: float


class Coverage(NamedTuple):
    """Shares between 0 and 1."""

    precision: float  # of the drawn points that lie among real ones: fidelity
    recall: float  # of the real points that lie among drawn ones: variety


def gaussian_frechet(
    mean_1: Float[Tensor, " d"],
    covariance_1: Float[Tensor, "d d"],
    mean_2: Float[Tensor, " d"],
    covariance_2: Float[Tensor, "d d"],
) -> Float[Tensor, ""]:
    """‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½), the squared 2-Wasserstein distance of two Gaussians.

    Through eigenvalues of symmetric matrices, so that singular covariances are no trouble.
    """
    values, vectors = torch.linalg.eigh(covariance_1)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.mT
    overlap = torch.linalg.eigvalsh(root @ covariance_2 @ root).clamp(min=0).sqrt().sum()
    spread = covariance_1.trace() + covariance_2.trace() - 2 * overlap
    distance: Tensor = (mean_1 - mean_2).square().sum() + spread.clamp(min=0)
    return distance


@torch.no_grad()
def frechet_distance(real: Float[Tensor, "count_x d"], drawn: Float[Tensor, "count_y d"]) -> float:
    """The Fréchet distance of the Gaussians with these rows' moments, FID's formula (Heusel et al. 2017).

    From few rows it is too large, by an amount that falls like one over their number: compare equal numbers only.
    """
    if min(len(real), len(drawn)) < 2:
        raise ValueError(f"a covariance needs two rows; got {len(real)} real and {len(drawn)} drawn")
    moments = [(rows.mean(0), rows.mT.cov()) for rows in (real.double(), drawn.double())]
    return float(gaussian_frechet(*moments[0], *moments[1]))


@torch.no_grad()
def kernel_distance(
    real: Float[Tensor, "count_x d"],
    drawn: Float[Tensor, "count_y d"],
    *,
    subsets: int = 50,
    size: int = 1_000,
    seed: int = 0,
) -> KernelDistance:
    """The unbiased MMD² under the cubic kernel, a mean over random subsets: KID's formula (Bińkowski et al. 2018).

    Right on average whatever the number of rows, so it may come out below zero; its error says what to make of that.
    """
    size = min(size, len(real) // 2, len(drawn) // 2)  # larger subsets would be much alike, and their spread no error
    if size < 2 or subsets < 2:
        raise ValueError(
            f"need four rows of each kind and two subsets; got {len(real)} real, {len(drawn)} drawn, subsets={subsets}"
        )
    source = torch.Generator().manual_seed(seed)

    def some(rows: Tensor) -> Tensor:
        return rows[torch.randperm(len(rows), generator=source)[:size].to(rows.device)].double()

    values = torch.stack([unbiased_squared_mmd(some(real), some(drawn), kernel=Cubic()) for _ in range(subsets)])
    independent = min(subsets, min(len(real), len(drawn)) / size)
    return KernelDistance(float(values.mean()), float(values.std()) / independent**0.5)


@torch.no_grad()
def precision_recall(
    real: Float[Tensor, "count_x d"], drawn: Float[Tensor, "count_y d"], *, neighbours: int = 3
) -> Coverage:
    """Precision and recall by balls that reach to the k-th neighbour of their own kind (Kynkäänniemi et al. 2019)."""
    if not 1 <= neighbours < min(len(real), len(drawn)):
        raise ValueError(
            f"need 1 ≤ neighbours < rows of either kind; got neighbours={neighbours}, {len(real)} and {len(drawn)} rows"
        )
    precision = _inside(drawn, real, neighbours).double().mean()
    recall = _inside(real, drawn, neighbours).double().mean()
    return Coverage(float(precision), float(recall))


def inception_score(log_probs: Float[Tensor, "count classes"]) -> float:
    """Gives exp E KL(p(y | x) ‖ p(y)): 1 where a classifier cannot tell samples apart, at most the number of classes.

    Each sample should be named with certainty, and all classes be drawn alike (Salimans et al. 2016).
    """
    p = log_probs.double().exp()
    if len(p) == 0 or not torch.allclose(p.sum(1), p.new_ones(len(p)), atol=1e-4):
        raise ValueError("need the logarithms of probabilities that sum to one in every row")
    gain = (p * (log_probs.double() - p.mean(0).log())).nan_to_num(0.0).sum(1)
    return float(gain.mean().exp())


def _inside(points: Tensor, others: Tensor, neighbours: int) -> Bool[Tensor, " count"]:
    """Whether each point lies in the ball of any of the others, which reaches to that one's k-th neighbour."""
    radius = torch.cat([torch.cdist(part, others).kthvalue(neighbours + 1, 1)[0] for part in others.split(1_000)])
    return torch.cat([(torch.cdist(part, others) <= radius).any(1) for part in points.split(1_000)])
