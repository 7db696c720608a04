"""Spectrum of a kernel: effective dimension, target alignment, learning curve, evidence (book eq. 15.62)."""

from dataclasses import dataclass
from math import log, pi
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class AmplitudeFit(NamedTuple):
    """The best amplitude v for a ratio σ²/v of noise to amplitude, and its log marginal likelihood per target.

    >>> AmplitudeFit(log_likelihood=-1.5, amplitude=2.0).amplitude
    2.0
    """

    log_likelihood: float
    amplitude: float


@dataclass(frozen=True, eq=False)
class KernelSpectrum:
    """K = U diag(λ) Uᵀ on n points, λ_1 ≥ λ_2 ≥ … ≥ 0.

    >>> spectrum = KernelSpectrum.from_matrix(torch.diag(torch.tensor([3.0, 1.0], dtype=torch.float64)))
    >>> spectrum.effective_dimension(noise=1.0)
    1.25
    """

    eigenvalues: Float[Tensor, " n"]
    eigenvectors: Float[Tensor, "n n"]

    @classmethod
    def from_matrix(cls, matrix: Float[Tensor, "n n"]) -> "KernelSpectrum":
        if not bool(matrix.isfinite().all()):
            raise ValueError("a kernel matrix must be finite; got NaN or ∞: check the points and the kernel")
        eigenvalues, eigenvectors = torch.linalg.eigh(matrix)
        return cls(eigenvalues.flip(0).clamp(min=0), eigenvectors.flip(1))

    def effective_dimension(self, noise: float) -> float:
        """Σ λ_i / (λ_i + σ²), the number of target directions that the posterior mean fits."""
        if not noise > 0:
            raise ValueError(f"the noise variance σ² must be positive; got {noise=}")
        return float((self.eigenvalues / (self.eigenvalues + noise)).sum())

    def alignment(self, t: Float[Tensor, "n *outputs"]) -> Float[Tensor, " n"]:
        """‖u_iᵀ t‖² / ‖t‖², the fraction of the targets along each eigenvector; fractions sum to 1."""
        squares = self._project(t).square().sum(1)
        return squares / squares.sum()

    def remaining_fraction(
        self, t: Float[Tensor, "n *outputs"], times: Float[Tensor, " times"]
    ) -> Float[Tensor, " times"]:
        """The fraction of ‖t‖² that gradient flow from f = 0 has not learned at each time (book eq. 15.62).

            ‖y − u(t)‖² / ‖y‖² = Σ_i alignment_i e^{−2 λ_i t}

        Eigenvectors of large λ_i are learned first, those of λ_i = 0 never.
        """
        decay = torch.exp(-2 * times.to(self.eigenvalues)[:, None] * self.eigenvalues)
        return decay @ self.alignment(t)

    def evidence(self, t: Float[Tensor, "n *outputs"], ratio: float) -> AmplitudeFit:
        """The marginal likelihood of t ~ N(0, v (K + ratio I)) at its best v, for each target (book eqs. 15.4, 15.5).

            v = tᵀ (K + ratio I)⁻¹ t / n,   log p(t) / n = −½ (log 2πv + 1) − (1/2n) Σ log(λ_i + ratio)

        Several columns of t share v. Every ratio after the first costs n operations.
        """
        if not ratio > 0:
            raise ValueError(f"the ratio σ²/v must be positive; got ratio={ratio}")
        squares, shifted = self._project(t).square(), self.eigenvalues + ratio
        amplitude = float((squares / shifted[:, None]).mean())
        return AmplitudeFit(-(log(2 * pi * amplitude) + 1 + float(shifted.log().mean())) / 2, amplitude)

    def solve(self, t: Float[Tensor, "n outputs"], ratio: float) -> Float[Tensor, "n outputs"]:
        """(K + ratio I)⁻¹ t."""
        return self.eigenvectors @ (self._project(t) / (self.eigenvalues + ratio)[:, None])

    def _project(self, t: Tensor) -> Tensor:
        if len(t) != len(self.eigenvalues):
            raise ValueError(f"t needs one row for each of {len(self.eigenvalues)} points; got {len(t)}")
        return self.eigenvectors.mT @ t.reshape(len(t), -1)
