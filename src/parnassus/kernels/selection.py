"""Which network, and how much noise? By marginal likelihood, or on rows held out (book sec. 15.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.kernels.spectrum import KernelSpectrum


@dataclass(frozen=True)
class Choice:
    """The best ratio ρ = σ²/v of noise to amplitude for one kernel, and its score: the larger the better."""

    ratio: float
    score: float


Criterion: TypeAlias = Callable[[Tensor, Tensor, Sequence[float]], Choice]
"""A kernel (n, n), targets (n, outputs) and shares of the kernel's mean variance in; the best of these out."""


def by_evidence(matrix: Float[Tensor, "n n"], t: Float[Tensor, "n outputs"], shares: Sequence[float]) -> Choice:
    """The ρ of the largest log marginal likelihood a target, each at its best amplitude (book eq. 15.4)."""
    spectrum = KernelSpectrum.of(matrix)
    return _best({ratio: spectrum.evidence(t, ratio).log_likelihood for ratio in _ratios(matrix, shares)})


def by_validation(matrix: Float[Tensor, "n n"], t: Float[Tensor, "n outputs"], shares: Sequence[float]) -> Choice:
    """The ρ of the least squared error on the last quarter of the points, fitted on the others."""
    seen = len(t) - len(t) // 4
    if seen == len(t):
        raise ValueError(f"a quarter of the points is held out, so at least four are needed; got {len(t)}")
    spectrum = KernelSpectrum.of(matrix[:seen, :seen])
    k = matrix[seen:, :seen]

    def score(ratio: float) -> float:
        return -float((k @ spectrum.solve(t[:seen], ratio) - t[seen:]).square().mean())

    return _best({ratio: score(ratio) for ratio in _ratios(matrix, shares)})


def _ratios(matrix: Tensor, shares: Sequence[float]) -> list[float]:
    if not shares or not min(shares) > 0:
        raise ValueError(f"need positive shares of noise to choose from; got shares={list(shares)}")
    mean = float(torch.mean(matrix.diagonal()))
    return [share * mean for share in shares]


def _best(scores: dict[float, float]) -> Choice:
    ratio = max(scores, key=scores.__getitem__)
    return Choice(ratio, scores[ratio])
