"""Functions of two numbers on which optimisers show their manners (book sec. 3.2, Diehl sec. 1.5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Surface:
    """A cost C(θ) on the plane with its set of minimisers, a start that is hard, and the window to draw.

    `minimisers` is argmin C = {θ : C(θ) ≤ C(θ′) for all θ′}, which may have any number of points; it is empty where C
    has no least value (Diehl sec. 1.5).
    """

    value: Callable[[Tensor], Tensor]
    minimisers: tuple[tuple[float, float], ...]
    start: tuple[float, float]
    across: tuple[float, float]
    up: tuple[float, float]

    def __call__(self, theta: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
        return self.value(theta)

    @property
    def least(self) -> float:
        """The value at the minimisers, −∞ where there are none."""
        return float(self(torch.tensor(self.minimisers[0], dtype=torch.float64))) if self.minimisers else -torch.inf

    def levels(self, columns: int = 161, rows: int = 121) -> tuple[Tensor, Tensor, Float[Tensor, "rows columns"]]:
        """The window as two axes and the heights over them."""
        across, up = torch.linspace(*self.across, columns), torch.linspace(*self.up, rows)
        return across, up, self(torch.stack(torch.meshgrid(across, up, indexing="xy"), -1).double())


def argmin(
    value: Callable[[Tensor], Tensor], candidates: Float[Tensor, "count dim"], *, slack: float = 0.0
) -> Float[Tensor, "best dim"]:
    """The set of candidates that none beats by more than `slack`: C(θ) ≤ C(θ′) + slack for all θ′ (Diehl sec. 1.5)."""
    values = value(candidates)
    return candidates[values <= values.min() + slack]


def valley(curvature: float = 20.0) -> Surface:
    """½ (x² + β y²): an ellipse in which descent zigzags (book fig. 3.1)."""
    if not curvature > 0:
        raise ValueError(f"the curvature must be positive; got curvature={curvature}")

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return (x.square() + curvature * y.square()) / 2

    return Surface(value, ((0.0, 0.0),), start=(-2.5, 0.6), across=(-3.0, 1.0), up=(-1.0, 1.0))


def rosenbrock() -> Surface:
    """(1 − x)² + 100 (y − x²)²: a curved valley with an almost flat floor (Rosenbrock 1960)."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return (1 - x).square() + 100 * (y - x.square()).square()

    return Surface(value, ((1.0, 1.0),), start=(-1.2, 1.0), across=(-1.8, 1.8), up=(-0.8, 2.4))


def beale() -> Surface:
    """Σ_k (c_k − x (1 − yᵏ))² with c = 1.5, 2.25, 2.625: plateaus, and cliffs at the corners (Beale 1958)."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return sum(
            ((c - x * (1 - y**k)).square() for k, c in ((1, 1.5), (2, 2.25), (3, 2.625))), start=torch.zeros_like(x)
        )

    return Surface(value, ((3.0, 0.5),), start=(1.0, 1.5), across=(-0.5, 4.5), up=(-1.5, 2.0))


def himmelblau() -> Surface:
    """(x² + y − 11)² + (x + y² − 7)²: four minimisers, so that the start decides (Himmelblau 1972)."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return (x.square() + y - 11).square() + (x + y.square() - 7).square()

    minimisers = (
        (3.0, 2.0),
        (-2.805118086952745, 3.131312518250573),
        (-3.779310253377747, -3.283185991286170),
        (3.584428340330492, -1.848126526964404),
    )
    return Surface(value, minimisers, start=(-0.4, -0.8), across=(-5.0, 5.0), up=(-5.0, 5.0))


def saddle() -> Surface:
    """x² − y²/2 + y⁴/16 with minimisers (0, ±2) and a saddle at the origin; the start is almost on its ridge."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return x.square() - y.square() / 2 + y**4 / 16

    return Surface(value, ((0.0, 2.0), (0.0, -2.0)), start=(-1.5, 1e-3), across=(-2.0, 1.0), up=(-2.6, 2.6))
