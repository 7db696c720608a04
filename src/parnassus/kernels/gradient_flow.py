"""Training with a kernel that stands still: every mode of it is learned at its own rate (book sec. 15.4)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Progress(NamedTuple):
    """How far training has come along each mode: what is `left` of a residual, and the `gain` (1 − left) / λ."""

    left: Float[Tensor, " n"]
    gain: Float[Tensor, " n"]


@dataclass(frozen=True)
class GradientFlow:
    """du/dt = −K (u − y) for the loss ½ Σ_n (f(x_n) − y_n)² and a kernel K that stays (book eqs. 15.59-15.62).

        u(t) = y + e^{−tK} (u(0) − y),   K = V diag(λ) Vᵀ                                       (book eq. 15.62)
        f_t(x) = f_0(x) + k(x)ᵀ K⁻¹ (I − e^{−tK}) (y − u(0))

    With f_0 = 0 and t → ∞ the second is kernel regression k(x)ᵀ K⁻¹ y (book eq. 15.48). Modes with λ = 0 are never
    learned, so u(t) → y only if K is positive definite; the text says always. Fastest modes come first.
    """

    rates: Float[Tensor, " n"]
    modes: Float[Tensor, "n n"]

    @classmethod
    def of(cls, kernel: Float[Tensor, "n n"], *, rounding: float | None = None) -> "GradientFlow":
        """The eigenvalues λ and eigenvectors of K; those of at most `rounding` times the largest count as 0.

        By default that is n ε. Kernels with an arc cosine are less exact, √ε, between points on one line.
        """
        rates, modes = torch.linalg.eigh(kernel)
        largest, eps = float(rates.abs().max()), torch.finfo(kernel.dtype).eps
        slack = largest * (len(kernel) * eps if rounding is None else rounding)
        crooked, wrong = float((kernel - kernel.mT).abs().max()), max(slack, 10 * eps**0.5 * largest)
        if crooked > wrong or float(rates[0]) < -wrong:
            raise ValueError(
                "a kernel must be symmetric and positive semi-definite; "
                f"entries differ by {crooked:.3g} and the least eigenvalue is {float(rates[0]):.3g}"
            )
        rates = torch.where(rates > slack, rates, 0.0)
        return cls(rates.flip(0), modes.flip(1))

    @property
    def largest_stable_rate(self) -> float:
        """2 / λ_max: gradient descent with a larger η leaves the minimum."""
        return 2 / float(self.rates[0])

    def at(self, time: float) -> Progress:
        """e^{−tλ} is left at the time t of gradient flow, which may be ∞."""
        if not time >= 0:
            raise ValueError(f"time must not be negative; got time={time}")
        known = self.rates > 0
        share = torch.where(known, -torch.expm1(-time * torch.where(known, self.rates, 1.0)), 0.0)
        return Progress(1 - share, self._gain(share))

    def after(self, steps: int, *, rate: float) -> Progress:
        """(1 − ηλ)^τ is left after τ steps of gradient descent with the learning rate η."""
        if steps < 0 or not rate > 0:
            raise ValueError(f"need steps ≥ 0 and rate > 0; got steps={steps}, rate={rate}")
        left = (1 - rate * self.rates) ** steps
        return Progress(left, self._gain(1 - left))

    def outputs(
        self, start: Float[Tensor, "n *outputs"], target: Float[Tensor, "n *outputs"], progress: Progress
    ) -> Float[Tensor, "n *outputs"]:
        """u(t) = y + V diag(left) Vᵀ (u(0) − y) on the training set (book eq. 15.62)."""
        return target + self._filtered(progress.left, start - target)

    def predict(
        self,
        cross: Float[Tensor, "m n"],
        start: Float[Tensor, "n *outputs"],
        target: Float[Tensor, "n *outputs"],
        progress: Progress,
    ) -> Float[Tensor, "m *outputs"]:
        """What training adds to f_0(x): k(x)ᵀ V diag(gain) Vᵀ (y − u(0)), with the rows k(x) of `cross` = K(x, X)."""
        added: Tensor = torch.tensordot(cross, self._filtered(progress.gain, target - start), 1)
        return added

    def along_modes(self, residual: Float[Tensor, "n *outputs"]) -> Float[Tensor, "n *outputs"]:
        """Vᵀ (u − y): how much of the residual lies along each mode, fastest first."""
        along: Tensor = torch.tensordot(self.modes.mT, residual, 1)
        return along

    def never_learned(
        self, start: Float[Tensor, "n *outputs"], target: Float[Tensor, "n *outputs"]
    ) -> Float[Tensor, "n *outputs"]:
        """What is left of u − y for ever: its part along modes with λ = 0."""
        return self._filtered((self.rates == 0).to(start), start - target)

    def matrix(self, factors: Float[Tensor, " n"]) -> Float[Tensor, "n n"]:
        """V diag(factors) Vᵀ: for `progress.gain` the M = K⁻¹ (I − e^{−tK}) of the dynamics."""
        return (self.modes * factors) @ self.modes.mT

    def _filtered(self, factors: Tensor, residual: Tensor) -> Tensor:
        along = self.along_modes(residual)
        back: Tensor = torch.tensordot(self.modes, factors.view(-1, *[1] * (along.ndim - 1)) * along, 1)
        return back

    def _gain(self, share: Tensor) -> Tensor:
        known = self.rates > 0
        return torch.where(known, share / torch.where(known, self.rates, 1.0), 0.0)  # along λ = 0 no k(x) points
