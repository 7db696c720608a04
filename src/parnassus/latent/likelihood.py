"""How likely data are under a latent-variable model, with what is needed to trust the number (Diehl sec. 6)."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.importance import EvidenceEstimate, evidence_from_weights


@runtime_checkable
class Weighing(Protocol):
    """A model that can draw codes of x and weigh them: log p(x, z) − log q(z|x) for z ~ q(z|x)."""

    def log_weights(self, x: Float[Tensor, "batch *event"], samples: int, /) -> Float[Tensor, "samples batch"]: ...


@torch.no_grad()
def importance_likelihood(
    model: Weighing, x: Float[Tensor, "batch *event"], *, samples: int = 500, at_once: int = 20_000
) -> EvidenceEstimate:
    """Estimate log p(x) of each row from `samples` codes of its own, weighing at most `at_once` codes at a time.

        log p̂(x) = log (1/S) Σ_s p(x, z_s) / q(z_s|x),   z_s ~ q(z|x)              (Burda et al. 2016; Diehl sec. 6)

    The estimate lies below log p(x) on average and rises with the number of samples.
    """
    if samples < 2:
        raise ValueError(f"a spread needs at least two samples; got samples={samples}")
    rows = max(1, min(len(x), at_once // samples))
    parts = [_weigh(model, part, samples, max(1, at_once // rows)) for part in x.split(rows)]
    log_evidence, spread, effective = (torch.cat(column) for column in zip(*(part[:3] for part in parts), strict=True))
    if not bool(log_evidence.isfinite().all()):
        raise ValueError(f"{int((~log_evidence.isfinite()).sum())} of {len(x)} rows have a likelihood of 0")
    return EvidenceEstimate(log_evidence, spread, effective, samples)


def _weigh(model: Weighing, x: Tensor, samples: int, at_once: int) -> EvidenceEstimate:
    sizes = [min(at_once, samples - start) for start in range(0, samples, at_once)]
    log_weights = torch.cat([model.log_weights(x, size) for size in sizes])
    return evidence_from_weights(log_weights.mT)
