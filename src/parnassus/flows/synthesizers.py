"""Synthesizers: monotone maps of single numbers, steered by what a conditioner says (book sec. 13.1).

The literature calls them transformers; the book's word keeps them apart from attention.
"""

from dataclasses import dataclass
from math import expm1, log
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, softplus

from parnassus.flows.splines import Knots, spline, spline_inverse


@runtime_checkable
class Synthesizer(Protocol):
    """x = τ(z; h), increasing in z, for every number z and its own `size` numbers h."""

    @property
    def size(self) -> int:
        """How many numbers h steer one τ."""
        ...

    def __call__(
        self, z: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        """Give τ(z; h) and log ∂τ/∂z."""
        ...

    def inverse(
        self, x: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        """Give z with τ(z; h) = x, and log ∂τ⁻¹/∂x, the negative of the one above at z."""
        ...


@dataclass(frozen=True)
class AffineSynthesizer:
    """τ(z; α̃, β) = exp(α̃) z + β: the scale is positive whatever the conditioner says (book eq. 13.17).

        log ∂τ/∂z = α̃

    h = 0 is the identity. With a `bound` b the logarithm of the scale is b tanh(α̃ / b), close to α̃ where that is small:
    without one, a few layers that grow exponentially one after the other overflow where there are no data.
    """

    bound: float | None = None

    def __post_init__(self) -> None:
        if self.bound is not None and not self.bound > 0:
            raise ValueError(f"the bound of a log-scale must be positive; got bound={self.bound}")

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

        h = (bins widths, bins heights, bins − 1 slopes), each made positive:
        width_k = 2 bound (m + (1 − m bins) softmax(h)_k),   heights alike,   slope_k = m + softplus(h_k + c)

    m is the `smallest` share of a bin and the smallest slope; c makes h = 0 the identity. The slope at both ends is 1,
    so that the curve leaves its square without a kink.
    """

    bins: int = 8
    bound: float = 5.0
    smallest: float = 1e-3

    def __post_init__(self) -> None:
        if self.bins < 1 or not self.bound > 0:
            raise ValueError(
                f"a spline needs at least one bin and a positive bound; got bins={self.bins}, bound={self.bound}"
            )
        if not 0 < self.smallest < 1 / self.bins:
            raise ValueError(
                f"the smallest share of {self.bins} bins must lie between 0 and 1/{self.bins}; "
                f"got smallest={self.smallest}"
            )

    @property
    def size(self) -> int:
        return 3 * self.bins - 1

    def knots(self, h: Float[Tensor, "*shape size"]) -> Knots:
        """Where the curve goes through, and how steeply."""
        widths, heights, slopes = h.split([self.bins, self.bins, self.bins - 1], -1)
        offset = log(expm1(1 - self.smallest))  # softplus(c) = 1 − m
        inner = self.smallest + softplus(slopes + offset)
        return Knots(self._corners(widths), self._corners(heights), pad(inner, (1, 1), value=1.0))

    def _corners(self, h: Tensor) -> Tensor:
        """The borders of bins whose shares of [−bound, bound] are softmax(h), none smaller than `smallest`."""
        shares = self.smallest + (1 - self.smallest * self.bins) * h.softmax(-1)
        inner = 2 * self.bound * shares.cumsum(-1)[..., :-1] - self.bound
        return pad(pad(inner, (1, 0), value=-self.bound), (0, 1), value=self.bound)

    def __call__(
        self, z: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        return spline(z, self.knots(h))

    def inverse(
        self, x: Float[Tensor, "*shape"], h: Float[Tensor, "*shape size"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        return spline_inverse(x, self.knots(h))
