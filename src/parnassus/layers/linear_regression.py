"""The linear model and its least-squares fit in closed form (book secs. 1.2 and 1.3)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


def linear_model(
    x: Float[Tensor, "*batch features"], w: Float[Tensor, " features"], b: Float[Tensor, ""]
) -> Float[Tensor, "*batch"]:
    """wᵀx + b of one point x, or X w + b·1 of all rows of X at once (book eqs. 1.1, 1.2)."""
    return x @ w + b


def least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, " features"], Float[Tensor, ""]]:
    """The (w, b) that minimise ‖X w + b·1 − y‖², in one step (book sec. 1.3).

    Solved by orthogonal factorisation of (X 1), never by forming XᵀX, which would square the condition number.
    """
    if len(x) == 0:
        raise ValueError("least squares needs at least one point; got none")
    with_ones = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
    solution = torch.linalg.lstsq(with_ones, y[:, None]).solution[:, 0]
    return solution[:-1], solution[-1]


@dataclass(frozen=True)
class LinearRegression:
    """Least squares as an estimator: `fit` learns slopes and intercept, `predict` applies them (book sec. 1.1)."""

    w: Float[Tensor, " features"]
    b: Float[Tensor, ""]

    @classmethod
    def fit(cls, x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]) -> "LinearRegression":
        return cls(*least_squares(x, y))

    def predict(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
        return linear_model(x, self.w, self.b)


def polynomial_features(x: Float[Tensor, " batch"], degree: int) -> Float[Tensor, "batch degree"]:
    """x, x², …, x^degree as columns: a linear model of these is a polynomial, the hypothesis class of that degree.

    Written in Legendre polynomials P₁ … P_degree, which span the same functions together with the intercept and stay
    apart on [−1, 1], where powers of x become nearly parallel.
    """
    if degree < 1:
        raise ValueError(f"degree must be at least 1; got degree={degree}")
    columns = [torch.ones_like(x), x]
    for k in range(1, degree):
        columns.append(((2 * k + 1) * x * columns[k] - k * columns[k - 1]) / (k + 1))
    return torch.stack(columns[1:], dim=1)
