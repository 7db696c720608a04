"""Gradient flow with a constant kernel: every eigenmode is learned at its own rate (book sec. 15.4)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_non_negative


class ModeConvergence(NamedTuple):
    """Training progress per mode: the `remaining` fraction of the residual, and `gain` = (1 − remaining) / λ.

    >>> ModeConvergence(remaining=torch.tensor([0.1, 0.9]), gain=torch.tensor([0.9, 0.1])).remaining.argmin().item()
    0
    """

    remaining: Float[Tensor, " n"]
    gain: Float[Tensor, " n"]


@dataclass(frozen=True)
class GradientFlow:
    """du/dt = −K (u − y) for the loss ½ Σ_n (f(x_n) − y_n)² and a constant kernel K (book eqs. 15.59-15.62).

        u(t) = y + e^{−tK} (u(0) − y),   K = V diag(λ) Vᵀ                                       (book eq. 15.62)
        f_t(x) = f_0(x) + k(x)ᵀ K⁻¹ (I − e^{−tK}) (y − u(0))

    With f_0 = 0 and t → ∞ the second is kernel regression k(x)ᵀ K⁻¹ y (book eq. 15.48). Modes with λ = 0 are never
    learned, so u(t) → y only if K is positive definite (the book omits this). Modes are sorted fastest first.

    >>> flow = GradientFlow.from_kernel(torch.eye(2, dtype=torch.float64))
    >>> flow.max_stable_learning_rate
    2.0
    """

    rates: Float[Tensor, " n"]
    modes: Float[Tensor, "n n"]

    @classmethod
    def from_kernel(cls, kernel: Float[Tensor, "n n"], *, rounding: float | None = None) -> "GradientFlow":
        """Eigenvalues λ and eigenvectors of K; those of at most `rounding` times the largest count as 0.

        `rounding` defaults to n ε. Arc-cosine kernels of collinear points are less accurate, about √ε.
        """
        rates, modes = torch.linalg.eigh(kernel)
        largest, eps = float(rates.abs().max()), torch.finfo(kernel.dtype).eps
        threshold = largest * (len(kernel) * eps if rounding is None else rounding)
        asymmetry, tolerance = float((kernel - kernel.mT).abs().max()), max(threshold, 10 * eps**0.5 * largest)
        if asymmetry > tolerance or float(rates[0]) < -tolerance:
            raise ValueError(
                f"a kernel must be symmetric and positive semi-definite; got an asymmetry of {asymmetry:.3g} and a "
                f"smallest eigenvalue of {float(rates[0]):.3g}"
            )
        rates = torch.where(rates > threshold, rates, 0.0)
        return cls(rates.flip(0), modes.flip(1))

    @property
    def max_stable_learning_rate(self) -> float:
        """2 / λ_max: gradient descent with a larger learning rate diverges."""
        return 2 / float(self.rates[0])

    def progress_at(self, time: float) -> ModeConvergence:
        """Gradient flow until the time t, which may be ∞: e^{−tλ} remains."""
        check_non_negative(time=time)
        positive = self.rates > 0
        learned = torch.where(positive, -torch.expm1(-time * torch.where(positive, self.rates, 1.0)), 0.0)
        return ModeConvergence(1 - learned, self._gain(learned))

    def progress_after(self, steps: int, *, learning_rate: float) -> ModeConvergence:
        """Gradient descent for τ steps with the learning rate η: (1 − ηλ)^τ remains."""
        if steps < 0 or not learning_rate > 0:
            raise ValueError(f"need steps ≥ 0 and learning_rate > 0; got {steps=}, {learning_rate=}")
        remaining = (1 - learning_rate * self.rates) ** steps
        return ModeConvergence(remaining, self._gain(1 - remaining))

    def outputs(
        self, start: Float[Tensor, "n *outputs"], target: Float[Tensor, "n *outputs"], progress: ModeConvergence
    ) -> Float[Tensor, "n *outputs"]:
        """u(t) = y + V diag(remaining) Vᵀ (u(0) − y) on the training set (book eq. 15.62)."""
        return target + self._filter_modes(progress.remaining, start - target)

    def predict(
        self,
        cross: Float[Tensor, "m n"],
        start: Float[Tensor, "n *outputs"],
        target: Float[Tensor, "n *outputs"],
        progress: ModeConvergence,
    ) -> Float[Tensor, "m *outputs"]:
        """The change f_t(x) − f_0(x) = k(x)ᵀ V diag(gain) Vᵀ (y − u(0)), with rows k(x) of `cross` = K(x, X)."""
        change: Tensor = torch.tensordot(cross, self._filter_modes(progress.gain, target - start), 1)
        return change

    def mode_coefficients(self, residual: Float[Tensor, "n *outputs"]) -> Float[Tensor, "n *outputs"]:
        """Vᵀ (u − y): coefficients of the residual in the modes, fastest first."""
        coefficients: Tensor = torch.tensordot(self.modes.mT, residual, 1)
        return coefficients

    def unlearnable_residual(
        self, start: Float[Tensor, "n *outputs"], target: Float[Tensor, "n *outputs"]
    ) -> Float[Tensor, "n *outputs"]:
        """The part of u − y along modes with λ = 0, which remains for all t."""
        return self._filter_modes((self.rates == 0).to(start), start - target)

    def matrix(self, factors: Float[Tensor, " n"]) -> Float[Tensor, "n n"]:
        """V diag(factors) Vᵀ: for `progress.gain` the M = K⁻¹ (I − e^{−tK}) of the dynamics."""
        return (self.modes * factors) @ self.modes.mT

    def _filter_modes(self, factors: Tensor, residual: Tensor) -> Tensor:
        coefficients = self.mode_coefficients(residual)
        scaled = factors.view(-1, *[1] * (coefficients.ndim - 1)) * coefficients
        filtered: Tensor = torch.tensordot(self.modes, scaled, 1)
        return filtered

    def _gain(self, learned: Tensor) -> Tensor:
        positive = self.rates > 0  # k(x) has no component along modes with λ = 0
        return torch.where(positive, learned / torch.where(positive, self.rates, 1.0), 0.0)
