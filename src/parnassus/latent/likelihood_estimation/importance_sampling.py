"""Importance-sampling estimates of log p(x) with standard errors (Diehl sec. 6)."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.inference.importance_sampling import EvidenceEstimate, evidence_from_weights


@runtime_checkable
class LatentVariableModel(Protocol):
    """A model with importance weights of sampled codes: log p(x, z) − log q(z|x) for z ~ q(z|x)."""

    def log_weights(self, x: Float[Tensor, "batch *event"], samples: int, /) -> Float[Tensor, "samples batch"]: ...


@torch.no_grad()
def importance_likelihood(
    model: LatentVariableModel, x: Float[Tensor, "batch *event"], *, samples: int = 500, chunk_size: int = 20_000
) -> EvidenceEstimate:
    """Estimate log p(x) of each row from `samples` codes, at most `chunk_size` codes at a time.

        log p̂(x) = log (1/S) Σ_s p(x, z_s) / q(z_s|x),   z_s ~ q(z|x)              (Burda et al. 2016; Diehl sec. 6)

    The estimate is below log p(x) in expectation and increases with the number of samples.
    """
    if samples < 2:
        raise ValueError(f"a standard error needs at least two samples; got samples={samples}")
    rows = max(1, min(len(x), chunk_size // samples))
    parts = [_estimate_chunk(model, part, samples, max(1, chunk_size // rows)) for part in x.split(rows)]
    log_evidence, error, sample_size = (torch.cat(column) for column in zip(*(part[:3] for part in parts), strict=True))
    if not bool(log_evidence.isfinite().all()):
        raise ValueError(f"{int((~log_evidence.isfinite()).sum())} of {len(x)} rows have a likelihood of 0")
    return EvidenceEstimate(log_evidence, error, sample_size, samples)


def _estimate_chunk(model: LatentVariableModel, x: Tensor, samples: int, chunk_size: int) -> EvidenceEstimate:
    sizes = [min(chunk_size, samples - start) for start in range(0, samples, chunk_size)]
    log_weights = torch.cat([model.log_weights(x, size) for size in sizes])
    return evidence_from_weights(log_weights.mT)
