"""Synthesizers: monotone scalar maps whose parameters a conditioner computes (book sec. 13.1).

The literature also calls them transformers; the book's term avoids confusion with attention.
"""

from dataclasses import dataclass
from math import expm1, log
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, softplus

from parnassus.flows.autoregressive.rational_quadratic_spline import (
    Knots,
    inverse_rational_quadratic_spline,
    rational_quadratic_spline,
)


@runtime_checkable
class Synthesizer(Protocol):
    """x = τ(z; h), increasing in z, elementwise with `size` parameters h for every z."""

    @property
    def size(self) -> int:
        """The number of parameters h of one τ."""
        ...

    def __call__(
        self, z: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        """Return τ(z; h) and log ∂τ/∂z."""
        ...

    def inverse(
        self, x: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        """Return z with τ(z; h) = x, and log ∂τ⁻¹/∂x = −log ∂τ/∂z."""
        ...


@dataclass(frozen=True)
class AffineSynthesizer:
    """τ(z; α̃, β) = exp(α̃) z + β: an affine map with positive scale (book eq. 13.17).

        log ∂τ/∂z = α̃

    h = 0 gives the identity. With a `bound` b the log-scale is b tanh(α̃ / b), close to α̃ where that is small; without
    a bound, a chain of layers can overflow far from the data.

    >>> AffineSynthesizer().size
    2
    """

    bound: float | None = None

    def __post_init__(self) -> None:
        if self.bound is not None and not self.bound > 0:
            raise ValueError(f"bound must be positive; got bound={self.bound}")

    @property
    def size(self) -> int:
        return 2

    def __call__(
        self, z: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        log_scale, shift = self._coefficients(h)
        return log_scale.exp() * z + shift, log_scale

    def inverse(
        self, x: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        log_scale, shift = self._coefficients(h)
        return (x - shift) * (-log_scale).exp(), -log_scale

    def _coefficients(self, h: Float[Tensor, "*shape size"]) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        log_scale, shift = h.unbind(-1)
        if self.bound is not None:
            log_scale = self.bound * (log_scale / self.bound).tanh()
        return log_scale, shift


@dataclass(frozen=True)
class SplineSynthesizer:
    """A monotone rational-quadratic spline on [−bound, bound] and the identity outside (Durkan et al. 2019).

        h = (widths, heights and inner derivatives of the bins), mapped to positive values by
        width_k = 2 bound (m + (1 − m bins) softmax(h)_k),   heights alike,   derivative_k = m + softplus(h_k + c)

    m = `min_fraction` is the smallest fraction of a bin and the smallest derivative; c is such that h = 0 gives the
    identity. The derivative at both ends is 1, so that the map is continuously differentiable.

    >>> SplineSynthesizer(bins=8).size
    23
    """

    bins: int = 8
    bound: float = 5.0
    min_fraction: float = 1e-3

    def __post_init__(self) -> None:
        if self.bins < 1 or not self.bound > 0:
            raise ValueError(f"bins must be at least 1 and bound positive; got bins={self.bins}, bound={self.bound}")
        if not 0 < self.min_fraction < 1 / self.bins:
            raise ValueError(
                f"min_fraction must lie between 0 and 1/bins = 1/{self.bins}; got min_fraction={self.min_fraction}"
            )

    @property
    def size(self) -> int:
        return 3 * self.bins - 1

    def knots(self, h: Float[Tensor, "*shape size"]) -> Knots:
        """The knots and derivatives of the spline."""
        widths, heights, derivatives = h.split([self.bins, self.bins, self.bins - 1], -1)
        offset = log(expm1(1 - self.min_fraction))  # softplus(c) = 1 − m
        inner = self.min_fraction + softplus(derivatives + offset)
        return Knots(self._borders(widths), self._borders(heights), pad(inner, (1, 1), value=1.0))

    def _borders(self, h: Tensor) -> Tensor:
        """Borders of bins that take up fractions softmax(h) of [−bound, bound], each at least `min_fraction`."""
        fractions = self.min_fraction + (1 - self.min_fraction * self.bins) * h.softmax(-1)
        inner = 2 * self.bound * fractions.cumsum(-1)[..., :-1] - self.bound
        return pad(pad(inner, (1, 0), value=-self.bound), (0, 1), value=self.bound)

    def __call__(
        self, z: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        return rational_quadratic_spline(z, self.knots(h))

    def inverse(
        self, x: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        return inverse_rational_quadratic_spline(x, self.knots(h))
