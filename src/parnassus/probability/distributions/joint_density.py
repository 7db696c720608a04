"""Joint densities on a grid, their marginals and conditionals, and histogram density estimates (Diehl sec. 5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive


@dataclass(frozen=True)
class GridDensity:
    """p_{X,Y} at the points of a grid, integrated by the trapezoidal rule (Diehl sec. 5).

        p_X(x) = ∫ p_{X,Y}(x, y) dy,   p_{X|Y=y}(x) = p_{X,Y}(x, y) / p_Y(y)

    The rule is accurate to rounding error for smooth densities that vanish at the boundary of the grid.

    >>> x = torch.linspace(0, 1, 11)
    >>> GridDensity(x, x, torch.ones(11, 11)).mass.item()
    1.0
    """

    x: Float[Tensor, " rows"]
    y: Float[Tensor, " columns"]
    values: Float[Tensor, "rows columns"]

    def __post_init__(self) -> None:
        if not bool((self.values >= 0).all()):
            raise ValueError(
                f"a density must not be negative or NaN; the smallest value is {float(self.values.min()):g}"
            )
        if not bool((self.x.diff() > 0).all() and (self.y.diff() > 0).all()):
            raise ValueError("the points of a grid must be strictly increasing along both axes")

    @classmethod
    def from_function(
        cls,
        density: Callable[[Tensor, Tensor], Tensor],
        *,
        x: Float[Tensor, " rows"],
        y: Float[Tensor, " columns"],
    ) -> "GridDensity":
        """Evaluate a density p(x, y), a function of two broadcastable tensors, on the grid."""
        return cls(x, y, density(x[:, None], y[None, :]))

    @property
    def mass(self) -> Float[Tensor, ""]:
        """∬ p dx dy, which is 1 where the grid covers the support."""
        return torch.trapezoid(self.marginal_x, self.x)

    @property
    def marginal_x(self) -> Float[Tensor, " rows"]:
        """p_X(x) = ∫ p_{X,Y}(x, y) dy."""
        return torch.trapezoid(self.values, self.y, dim=1)

    @property
    def marginal_y(self) -> Float[Tensor, " columns"]:
        """p_Y(y) = ∫ p_{X,Y}(x, y) dx."""
        return torch.trapezoid(self.values, self.x, dim=0)

    @property
    def product(self) -> Float[Tensor, "rows columns"]:
        """p_X(x) p_Y(y), equal to p_{X,Y}(x, y) if and only if X and Y are independent."""
        return self.marginal_x[:, None] * self.marginal_y

    @property
    def conditional_x(self) -> Float[Tensor, "columns rows"]:
        """p_{X|Y=y}(x) = p_{X,Y}(x, y) / p_Y(y), one row per y; p_X where p_Y(y) = 0 (Diehl thm. 5.2)."""
        possible = self.marginal_y > 0
        ratio = self.values.mT / torch.where(possible, self.marginal_y, 1)[:, None]
        return torch.where(possible[:, None], ratio, self.marginal_x)


def box_density(
    points: Float[Tensor, "draws dim"], *, centre: Float[Tensor, " dim"], width: float
) -> Float[Tensor, ""]:
    """The fraction of points in a cube of side h divided by its volume: a histogram density estimate (Diehl sec. 5).

    It converges as h → 0 where the points have a continuous density. Pairs (X, X) have no density: their distribution
    is concentrated on the diagonal, a null set, and the estimate grows like 1/h.
    """
    check_positive(width=width)
    inside = ((points - centre).abs() <= width / 2).all(-1)
    return inside.to(points.dtype).mean() / width ** points.shape[-1]
