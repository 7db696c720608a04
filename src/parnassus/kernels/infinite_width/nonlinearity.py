"""Nonlinearities and their Gaussian expectations E σ(u)σ(v) and E σ'(u)σ'(v) (book eqs. 15.19-15.21)."""

from dataclasses import dataclass
from math import pi
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


class Expectations(NamedTuple):
    """E σ(u)σ(v) and E σ'(u)σ'(v) for (u, v) ~ N(0, Λ).

    >>> Expectations(value=torch.tensor(0.5), derivative=torch.tensor(0.25)).value.item()
    0.5
    """

    value: Float[Tensor, "*shape"]
    derivative: Float[Tensor, "*shape"]


@runtime_checkable
class Nonlinearity(Protocol):
    """An entrywise function σ and its expectations under Gaussians of mean zero."""

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]: ...

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        """Expectations for Λ = [[left, cross], [cross, right]]; the variances broadcast against `cross`."""
        ...

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """E σ(u)² for u ~ N(0, variance)."""
        ...


@dataclass(frozen=True)
class ReLU:
    """max(x, 0), from the arc-cosine kernel with r = √(Σ_x Σ_x' − Σ²) and cos θ = Σ / √(Σ_x Σ_x') (Cho & Saul 2009).

        E σ'σ' = (π − θ) / 2π = ¼ + atan2(Σ, r) / 2π
        E σσ   = √(Σ_x Σ_x') (sin θ + (π − θ) cos θ) / 2π = r / 2π + Σ E σ'σ'

    The angle of an input of length 0 is undefined; E σ'σ' is then ¼, as for σ'(0) = ½. In a network Θ = 0 there.

    >>> ReLU().second_moment(torch.tensor(2.0)).item()
    1.0
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.relu()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        root = _determinant(cross, left, right).clamp(min=torch.finfo(cross.dtype).tiny).sqrt_()
        derivative = torch.atan2(cross, root).mul_(0.5 / pi).add_(0.25)
        return Expectations((derivative * cross).add_(root, alpha=0.5 / pi), derivative)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return variance / 2


@dataclass(frozen=True)
class LeakyReLU:
    """max(x, a x) = a x + (1 − a) max(x, 0), with E σσ = a Σ + (1 − a)² times ReLU's.

    >>> LeakyReLU(a=0.5).second_moment(torch.tensor(2.0)).item()
    1.25
    """

    a: float = 0.1

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.nn.functional.leaky_relu(x, self.a)

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        value, derivative = ReLU().expect(cross, left, right)
        factor = (1 - self.a) ** 2
        return Expectations(self.a * cross + factor * value, self.a + factor * derivative)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return (1 + self.a**2) / 2 * variance


@dataclass(frozen=True)
class Erf:
    """erf(x), with D = (1 + 2Σ_x)(1 + 2Σ_x') − 4Σ² (Williams 1997).

    E σσ   = 2/π arcsin(2Σ / √((1 + 2Σ_x)(1 + 2Σ_x'))) = 2/π atan2(2Σ, √D)
    E σ'σ' = 4 / π√D

    >>> Erf().second_moment(torch.tensor(1.0))
    tensor(0.4646)
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.erf()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        root = _determinant(cross, left, right).clamp(min=0.0).mul_(4).add_(1 + 2 * left).add_(2 * right).sqrt_()
        return Expectations(torch.atan2(2 * cross, root).mul_(2 / pi), (4 / pi) / root)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return 2 / pi * torch.atan2(2 * variance, (1 + 4 * variance).sqrt())


@dataclass(frozen=True)
class GELU:
    """x Φ(x), with D = (1 + Σ_x)(1 + Σ_x') − Σ² and B = E Φ(u)Φ(v) = ¼ + atan2(Σ, √D) / 2π.

        E σσ   = Σ B + (Σ_x Σ_x' − Σ² + Σ²/(1 + Σ_x) + Σ²/(1 + Σ_x')) / 2π√D
        E σ'σ' = B + Σ (1/(1 + Σ_x) + 1/(1 + Σ_x') + 1/D) / 2π√D

    Integration by parts, E u g(u, v) = Σ_x E ∂g/∂u + Σ E ∂g/∂v, removes u and v from E uΦ(u) vΦ(v). The remaining
    terms contain a density φ of u or v, which turns N(0, Λ) into another Gaussian.

    >>> GELU().second_moment(torch.tensor(1.0))
    tensor(0.4252)
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.nn.functional.gelu(x)

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        determinant = _determinant(cross, left, right).clamp(min=0.0)
        d = (1 + left) + right + determinant
        root = d.sqrt()
        both = torch.atan2(cross, root).mul_(0.5 / pi).add_(0.25)
        inverses = 1 / (1 + left) + 1 / (1 + right)
        value = both * cross + (determinant + cross * cross * inverses) * (0.5 / pi) / root
        return Expectations(value, both + (inverses + 1 / d) * cross * (0.5 / pi) / root)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        root = (1 + 2 * variance).sqrt()
        both = torch.atan2(variance, root).mul_(0.5 / pi).add_(0.25)
        return variance * both + variance * variance / (pi * (1 + variance) * root)


@dataclass(frozen=True)
class Sine:
    """sin(x): E σσ = exp(−(Σ_x + Σ_x')/2) sinh Σ, E σ'σ' with cosh for sinh; written so as not to overflow.

    >>> Sine().second_moment(torch.tensor(1.0))
    tensor(0.4323)
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.sin()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        near, far = _exponentials(cross, left, right)
        return Expectations(near - far, near + far)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return -0.5 * torch.expm1(-2 * variance)


@dataclass(frozen=True)
class Cosine:
    """cos(x): E σσ = exp(−(Σ_x + Σ_x')/2) cosh Σ, E σ'σ' with sinh for cosh.

    >>> Cosine().second_moment(torch.tensor(1.0))
    tensor(0.5677)
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x.cos()

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        near, far = _exponentials(cross, left, right)
        return Expectations(near + far, near - far)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return 0.5 * (1 + torch.exp(-2 * variance))


@dataclass(frozen=True)
class Identity:
    """σ(x) = x, for linear networks.

    >>> Identity().second_moment(torch.tensor(2.0)).item()
    2.0
    """

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return x

    def expect(
        self,
        cross: Float[Tensor, "*shape"],
        left: Float[Tensor, "*_left"],  # noqa: ARG002 - part of the Nonlinearity interface
        right: Float[Tensor, "*_right"],  # noqa: ARG002
    ) -> Expectations:
        return Expectations(cross, torch.ones_like(cross))

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return variance


def normaliser(nonlinearity: Nonlinearity) -> float:
    """c_σ = 1 / E σ(z)² for z ~ N(0, 1); the book prints 1 / (E σ(z))² (book eq. 15.27)."""
    return 1 / float(nonlinearity.second_moment(torch.ones((), dtype=torch.float64)))


def _determinant(cross: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Σ_x Σ_x' − Σ², the determinant of Λ; exactly 0 for equal inputs, unlike a fused operation."""
    return (left * right).sub_(cross * cross)


def _exponentials(cross: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """exp(±Σ − (Σ_x + Σ_x')/2) / 2."""
    middle = (left + right) / 2
    return 0.5 * torch.exp(cross - middle), 0.5 * torch.exp(-cross - middle)
