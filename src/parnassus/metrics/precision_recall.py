"""Precision and recall of samples by nearest-neighbour balls (Kynkäänniemi et al. 2019)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.arrays import accepts_arrays


class PrecisionRecall(NamedTuple):
    """Fractions between 0 and 1."""

    precision: float  # of the samples that lie among real points: fidelity
    recall: float  # of the real points that lie among samples: diversity


@torch.no_grad()
@accepts_arrays
def precision_recall(
    real: Float[Tensor, "count_x d"], samples: Float[Tensor, "count_y d"], *, neighbours: int = 3
) -> PrecisionRecall:
    """Precision and recall; the support of a set is the union of balls around its points, up to the k-th neighbour."""
    if not 1 <= neighbours < min(len(real), len(samples)):
        raise ValueError(
            "neighbours must be at least 1 and smaller than either number of rows; "
            f"got neighbours={neighbours}, {len(real)} real and {len(samples)} samples"
        )
    precision = _is_covered(samples, real, neighbours).double().mean()
    recall = _is_covered(real, samples, neighbours).double().mean()
    return PrecisionRecall(float(precision), float(recall))


def _is_covered(points: Tensor, others: Tensor, neighbours: int) -> Bool[Tensor, " count"]:
    radius = torch.cat([torch.cdist(part, others).kthvalue(neighbours + 1, 1)[0] for part in others.split(1_000)])
    return torch.cat([(torch.cdist(part, others) <= radius).any(1) for part in points.split(1_000)])
