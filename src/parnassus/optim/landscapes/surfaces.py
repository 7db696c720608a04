"""Two-dimensional test functions for optimisers, with their minimisers (book sec. 3.2, Diehl sec. 1.5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Surface:
    """A cost C(θ) on the plane with its minimisers, a difficult start, and the window to plot.

    `minimisers` is argmin C = {θ : C(θ) ≤ C(θ′) for all θ′}, which may have any number of points; it is empty if C has
    no minimum (Diehl sec. 1.5).

    >>> bowl = Surface(lambda x: x.square().sum(-1), ((0.0, 0.0),), (1.0, 1.0), (-2.0, 2.0), (-2.0, 2.0))
    >>> bowl.minimum
    0.0
    """

    value: Callable[[Tensor], Tensor]
    minimisers: tuple[tuple[float, float], ...]
    start: tuple[float, float]
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def __call__(self, theta: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
        return self.value(theta)

    @property
    def minimum(self) -> float:
        """The value at the minimisers, −∞ if there are none."""
        return float(self(torch.tensor(self.minimisers[0], dtype=torch.float64))) if self.minimisers else -torch.inf

    def evaluate_grid(
        self, columns: int = 161, rows: int = 121
    ) -> tuple[Tensor, Tensor, Float[Tensor, "rows columns"]]:
        """The x and y coordinates of a grid over the window, and the values on it."""
        x, y = torch.linspace(*self.x_range, columns), torch.linspace(*self.y_range, rows)
        return x, y, self(torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).double())


def argmin_set(
    value: Callable[[Tensor], Tensor], candidates: Float[Tensor, "count dim"], *, tolerance: float = 0.0
) -> Float[Tensor, "best dim"]:
    """All candidates θ with C(θ) ≤ min C + `tolerance` (Diehl sec. 1.5)."""
    values = value(candidates)
    return candidates[values <= values.min() + tolerance]


def quadratic_valley(curvature: float = 20.0) -> Surface:
    """½ (x² + β y²): a narrow valley in which gradient descent zigzags (book fig. 3.1)."""
    if not curvature > 0:
        raise ValueError(f"the curvature must be positive; got curvature={curvature}")

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return (x.square() + curvature * y.square()) / 2

    return Surface(value, ((0.0, 0.0),), start=(-2.5, 0.6), x_range=(-3.0, 1.0), y_range=(-1.0, 1.0))


def rosenbrock() -> Surface:
    """(1 − x)² + 100 (y − x²)²: a curved valley with an almost flat floor (Rosenbrock 1960)."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return (1 - x).square() + 100 * (y - x.square()).square()

    return Surface(value, ((1.0, 1.0),), start=(-1.2, 1.0), x_range=(-1.8, 1.8), y_range=(-0.8, 2.4))


def beale() -> Surface:
    """Σ_k (c_k − x (1 − yᵏ))² with c = 1.5, 2.25, 2.625: plateaus and steep corners (Beale 1958)."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return sum(
            ((c - x * (1 - y**k)).square() for k, c in ((1, 1.5), (2, 2.25), (3, 2.625))), start=torch.zeros_like(x)
        )

    return Surface(value, ((3.0, 0.5),), start=(1.0, 1.5), x_range=(-0.5, 4.5), y_range=(-1.5, 2.0))


def himmelblau() -> Surface:
    """(x² + y − 11)² + (x + y² − 7)²: four minimisers (Himmelblau 1972)."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return (x.square() + y - 11).square() + (x + y.square() - 7).square()

    minimisers = (
        (3.0, 2.0),
        (-2.805118086952745, 3.131312518250573),
        (-3.779310253377747, -3.283185991286170),
        (3.584428340330492, -1.848126526964404),
    )
    return Surface(value, minimisers, start=(-0.4, -0.8), x_range=(-5.0, 5.0), y_range=(-5.0, 5.0))


def saddle() -> Surface:
    """x² − y²/2 + y⁴/16: minimisers (0, ±2) and a saddle point at the origin; the start is almost on its ridge."""

    def value(theta: Tensor) -> Tensor:
        x, y = theta.unbind(-1)
        return x.square() - y.square() / 2 + y**4 / 16

    return Surface(value, ((0.0, 2.0), (0.0, -2.0)), start=(-1.5, 1e-3), x_range=(-2.0, 1.0), y_range=(-2.6, 2.6))
