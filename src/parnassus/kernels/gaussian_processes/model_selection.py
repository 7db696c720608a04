"""Select the noise ratio by marginal likelihood or on held-out rows (book sec. 15.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.kernels.training_dynamics.kernel_spectrum import KernelSpectrum


@dataclass(frozen=True)
class SelectedRatio:
    """The best ratio ρ = σ²/v of noise to amplitude for one kernel, and its score (higher is better).

    >>> SelectedRatio(ratio=0.01, score=-1.2).ratio
    0.01
    """

    ratio: float
    score: float


SelectionCriterion: TypeAlias = Callable[[Tensor, Tensor, Sequence[float]], SelectedRatio]
"""Maps a kernel (n, n), targets (n, outputs) and noise levels relative to the mean variance to the best ratio."""


def select_by_evidence(
    matrix: Float[Tensor, "n n"], t: Float[Tensor, "n outputs"], noise_levels: Sequence[float]
) -> SelectedRatio:
    """The ρ of largest log marginal likelihood per target, each at its best amplitude (book eq. 15.4)."""
    spectrum = KernelSpectrum.from_matrix(matrix)
    return _best({ratio: spectrum.evidence(t, ratio).log_likelihood for ratio in _ratios(matrix, noise_levels)})


def select_by_validation(
    matrix: Float[Tensor, "n n"], t: Float[Tensor, "n outputs"], noise_levels: Sequence[float]
) -> SelectedRatio:
    """The ρ of smallest squared error on the last quarter of the points, fitted to the others."""
    num_train = len(t) - len(t) // 4
    if num_train == len(t):
        raise ValueError(f"validation holds out a quarter of the points and needs at least four; got {len(t)}")
    spectrum = KernelSpectrum.from_matrix(matrix[:num_train, :num_train])
    k = matrix[num_train:, :num_train]

    def score(ratio: float) -> float:
        return -float((k @ spectrum.solve(t[:num_train], ratio) - t[num_train:]).square().mean())

    return _best({ratio: score(ratio) for ratio in _ratios(matrix, noise_levels)})


def _ratios(matrix: Tensor, noise_levels: Sequence[float]) -> list[float]:
    if not noise_levels or not min(noise_levels) > 0:
        raise ValueError(f"noise_levels must be positive and not empty; got noise_levels={list(noise_levels)}")
    mean = float(torch.mean(matrix.diagonal()))
    return [level * mean for level in noise_levels]


def _best(scores: dict[float, float]) -> SelectedRatio:
    ratio = max(scores, key=scores.__getitem__)
    return SelectedRatio(ratio, scores[ratio])
