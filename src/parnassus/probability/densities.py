"""Joint densities on a grid: marginals, conditional densities, and pairs that have none (Diehl sec. 5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class GridDensity:
    """p_{X,Y} at the points of a grid, integrated by the trapezium rule (Diehl sec. 5).

        p_X(x) = ∫ p_{X,Y}(x, y) dy,   p_{X|Y=y}(x) = p_{X,Y}(x, y) / p_Y(y)

    The rule is accurate to rounding for smooth densities that have died out at the borders.
    """

    x: Float[Tensor, " rows"]
    y: Float[Tensor, " columns"]
    values: Float[Tensor, "rows columns"]

    def __post_init__(self) -> None:
        if not bool((self.values >= 0).all()):
            raise ValueError(f"a density must not be negative or NaN; the least value is {float(self.values.min()):g}")
        if not bool((self.x.diff() > 0).all() and (self.y.diff() > 0).all()):
            raise ValueError("the points of a grid must ascend along both axes")

    @classmethod
    def of(
        cls,
        density: Callable[[Tensor, Tensor], Tensor],
        *,
        x: Float[Tensor, " rows"],
        y: Float[Tensor, " columns"],
    ) -> "GridDensity":
        """The values of a density p(x, y), which takes two tensors that broadcast."""
        return cls(x, y, density(x[:, None], y[None, :]))

    @property
    def mass(self) -> Float[Tensor, ""]:
        """∬ p dx dy, which is 1 for a density that the grid catches."""
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
        """p_X(x) p_Y(y), which is p_{X,Y}(x, y) everywhere exactly if X and Y are independent."""
        return self.marginal_x[:, None] * self.marginal_y

    @property
    def conditional_x(self) -> Float[Tensor, "columns rows"]:
        """p_{X|Y=y}(x) = p_{X,Y}(x, y) / p_Y(y), a row for each y; p_X where p_Y(y) = 0 (Diehl thm. 5.2)."""
        possible = self.marginal_y > 0
        ratio = self.values.mT / torch.where(possible, self.marginal_y, 1)[:, None]
        return torch.where(possible[:, None], ratio, self.marginal_x)


def box_density(
    points: Float[Tensor, "draws dim"], *, centre: Float[Tensor, " dim"], width: float
) -> Float[Tensor, ""]:
    """The share of points in a cube of side h, by its volume: the height of a histogram there (Diehl sec. 5).

    Where the points have a continuous density it settles as h → 0. Pairs (X, X) have none: all their mass is on the
    diagonal, which has no area, and the height grows like 1/h.
    """
    if not width > 0:
        raise ValueError(f"the width must be positive; got width={width}")
    inside = ((points - centre).abs() <= width / 2).all(-1)
    return inside.to(points.dtype).mean() / width ** points.shape[-1]
