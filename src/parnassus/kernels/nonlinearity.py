"""Nonlinearities together with what a Gaussian expects of them: E σ(u)σ(v) and E σ'(u)σ'(v) (book eqs. 15.19-15.21)."""

from dataclasses import dataclass
from math import pi
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


class Expected(NamedTuple):
    """E σ(u)σ(v) and E σ'(u)σ'(v) for (u, v) ~ N(0, Λ)."""

    value: Float[Tensor, "*shape"]
    slope: Float[Tensor, "*shape"]


@runtime_checkable
class Nonlinearity(Protocol):
    """A function σ of one number, and its expectations under Gaussians of mean zero."""

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]: ...

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        """Λ = [[left, cross], [cross, right]]; both variances are shaped to meet the covariances."""
        ...

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """E σ(u)² for u ~ N(0, variance)."""
        ...


@dataclass(frozen=True)
class ReLU:
    """max(x, 0), from the arc-cosine kernel with r = √(Σ_x Σ_x' − Σ²) and cos θ = Σ / √(Σ_x Σ_x') (Cho & Saul 2009).

        E σ'σ' = (π − θ) / 2π = ¼ + atan2(Σ, r) / 2π
        E σσ   = √(Σ_x Σ_x') (sin θ + (π − θ) cos θ) / 2π = r / 2π + Σ E σ'σ'

    An input without length has no angle; E σ'σ' is then ¼, as if σ'(0) were ½. In a network it meets Θ = 0 there.
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.relu()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        root = _gap(cross, left, right).clamp(min=torch.finfo(cross.dtype).tiny).sqrt_()
        slope = torch.atan2(cross, root).mul_(0.5 / pi).add_(0.25)
        return Expected((slope * cross).add_(root, alpha=0.5 / pi), slope)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return variance / 2


@dataclass(frozen=True)
class Leaky:
    """x where it is positive, a x elsewhere: a x + (1 − a) max(x, 0), so E σσ = a Σ + (1 − a)² of ReLU's."""

    a: float = 0.1

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.nn.functional.leaky_relu(x, self.a)

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        value, slope = ReLU().expect(cross, left, right)
        share = (1 - self.a) ** 2
        return Expected(self.a * cross + share * value, self.a + share * slope)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return (1 + self.a**2) / 2 * variance


@dataclass(frozen=True)
class Erf:
    """erf(x), with D = (1 + 2Σ_x)(1 + 2Σ_x') − 4Σ² (Williams 1997).

    E σσ   = 2/π arcsin(2Σ / √((1 + 2Σ_x)(1 + 2Σ_x'))) = 2/π atan2(2Σ, √D)
    E σ'σ' = 4 / π√D
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.erf()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        root = _gap(cross, left, right).clamp(min=0.0).mul_(4).add_(1 + 2 * left).add_(2 * right).sqrt_()
        return Expected(torch.atan2(2 * cross, root).mul_(2 / pi), (4 / pi) / root)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return 2 / pi * torch.atan2(2 * variance, (1 + 4 * variance).sqrt())


@dataclass(frozen=True)
class GELU:
    """x Φ(x), with D = (1 + Σ_x)(1 + Σ_x') − Σ² and B = E Φ(u)Φ(v) = ¼ + atan2(Σ, √D) / 2π.

        E σσ   = Σ B + (Σ_x Σ_x' − Σ² + Σ²/(1 + Σ_x) + Σ²/(1 + Σ_x')) / 2π√D
        E σ'σ' = B + Σ (1/(1 + Σ_x) + 1/(1 + Σ_x') + 1/D) / 2π√D

    By parts: E u g(u, v) = Σ_x E ∂g/∂u + Σ E ∂g/∂v takes u and v out of E uΦ(u) vΦ(v). What is left has a density φ of
    u or v in it, which turns N(0, Λ) into another Gaussian.
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.nn.functional.gelu(x)

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        gap = _gap(cross, left, right).clamp(min=0.0)
        determinant = (1 + left) + right + gap
        root = determinant.sqrt()
        both = torch.atan2(cross, root).mul_(0.5 / pi).add_(0.25)
        shares = 1 / (1 + left) + 1 / (1 + right)
        value = both * cross + (gap + cross * cross * shares) * (0.5 / pi) / root
        return Expected(value, both + (shares + 1 / determinant) * cross * (0.5 / pi) / root)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        root = (1 + 2 * variance).sqrt()
        both = torch.atan2(variance, root).mul_(0.5 / pi).add_(0.25)
        return variance * both + variance * variance / (pi * (1 + variance) * root)


@dataclass(frozen=True)
class Sine:
    """sin(x): E σσ = exp(−(Σ_x + Σ_x')/2) sinh Σ, E σ'σ' the same with cosh; written so that nothing overflows."""

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.sin()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        near, far = _waves(cross, left, right)
        return Expected(near - far, near + far)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return -0.5 * torch.expm1(-2 * variance)


@dataclass(frozen=True)
class Cosine:
    """cos(x): E σσ = exp(−(Σ_x + Σ_x')/2) cosh Σ, E σ'σ' the same with sinh."""

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.cos()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        near, far = _waves(cross, left, right)
        return Expected(near + far, near - far)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return 0.5 * (1 + torch.exp(-2 * variance))


@dataclass(frozen=True)
class Identity:
    """The nonlinearity that is none."""

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x

    def expect(
        self,
        cross: Float[Tensor, "*shape"],
        left: Float[Tensor, "*_left"],  # noqa: ARG002 - as every nonlinearity has it
        right: Float[Tensor, "*_right"],  # noqa: ARG002
    ) -> Expected:
        return Expected(cross, torch.ones_like(cross))

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return variance


def normaliser(nonlinearity: Nonlinearity) -> float:
    """c_σ = 1 / E σ(z)² for z ~ N(0, 1); not 1 / (E σ(z))², as it is printed (book eq. 15.27)."""
    return 1 / float(nonlinearity.square(torch.ones((), dtype=torch.float64)))


def _gap(cross: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Σ_x Σ_x' − Σ², the determinant of Λ; of equal inputs exactly 0, which one fused operation would not give."""
    return (left * right).sub_(cross * cross)


def _waves(cross: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """exp(±Σ − (Σ_x + Σ_x')/2) / 2."""
    middle = (left + right) / 2
    return 0.5 * torch.exp(cross - middle), 0.5 * torch.exp(-cross - middle)
