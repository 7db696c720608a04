"""Linear regression: least squares in closed form and mini-batch SGD (book secs. 1.2, 1.3, Zhao sec. 3)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_at_least_one
from parnassus.optim.optimisers.gradient_descent import gradient_step
from parnassus.optim.optimisers.weight_decay import weight_decay_step


def linear_model(
    x: Float[Tensor, "*batch features"], w: Float[Tensor, " features"], b: Float[Tensor, ""]
) -> Float[Tensor, "*batch"]:
    """wᵀx + b for one point x, or X w + b·1 for all rows of X (book eqs. 1.1, 1.2, Zhao eqs. 4-5)."""
    return x @ w + b


@accepts_arrays
def least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, " features"], Float[Tensor, ""]]:
    """The (w, b) that minimise ‖X w + b·1 − y‖², with minimal norm if not unique (book sec. 1.3)."""
    check_regression_data(x, y)
    solution = minimum_norm_solution(append_ones(x), y)
    return solution[:-1], solution[-1]


def minimum_norm_solution(
    design: Float[Tensor, "rows columns"], y: Float[Tensor, " rows"]
) -> Float[Tensor, " columns"]:
    """Minimum-norm least-squares solution A⁺ y: of all minimisers of ‖A θ − y‖, the one with the smallest ‖θ‖.

        A = U S Vᵀ,   A⁺ = V S⁺ Uᵀ

    Computed by the SVD, since forming AᵀA squares the condition number. `torch.linalg.lstsq` is not used: for a rank-
    deficient A its default driver on the CPU does not reach the minimum.
    """
    u, s, v = torch.linalg.svd(design, full_matrices=False)
    nonzero = s > max(design.shape) * torch.finfo(s.dtype).eps * s[0]
    solution: Tensor = v.mT @ torch.where(nonzero, (u.mT @ y) / s, 0.0)
    return solution


def check_regression_data(x: Float[Tensor, "batch features"], y: Shaped[Tensor, "rows *target"]) -> None:
    """Raise a ValueError if x and y are empty, of different length or not finite."""
    if len(x) == 0:
        raise ValueError("a fit needs at least one example; got none")
    if len(x) != len(y):
        raise ValueError(f"x and y must have the same number of rows; got {len(x)} and {len(y)}")
    if not bool(x.isfinite().all() & y.isfinite().all()):
        raise ValueError("x and y must be finite; got NaN or infinite values")


def append_ones(x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features_and_one"]:
    """(X 1), with a column of ones whose weight is the intercept."""
    return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def linear_sgd_step(
    w: Float[Tensor, " features"],
    b: Float[Tensor, ""],
    x: Float[Tensor, "batch features"],
    y: Float[Tensor, " batch"],
    *,
    learning_rate: float,
    weight_decay: float = 0.0,
) -> tuple[Float[Tensor, " features"], Float[Tensor, ""]]:
    """One step of mini-batch SGD on ½(wᵀx + b − y)² (Zhao sec. 3).

        w ← (1 − ηλ) w − η/|B| Σ_{i∈B} x_i (wᵀx_i + b − y_i)
        b ← b − η/|B| Σ_{i∈B} (wᵀx_i + b − y_i)

    Weight decay λ does not apply to the intercept. As printed, the step of b starts from w, and the decayed step of w
    lacks the factor 1 − ηλ.
    """
    residual = linear_model(x, w, b) - y
    w = weight_decay_step(w, residual @ x / len(x), learning_rate=learning_rate, weight_decay=weight_decay)
    return w, gradient_step(b, residual.mean(), learning_rate)


@accepts_arrays
def leverages(x: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
    """Leverages h_ii = ∂ŷ_i/∂y_i, the diagonal of the hat matrix H = X̃ (X̃ᵀX̃)⁻¹ X̃ᵀ with X̃ = (X 1)."""
    basis, _ = torch.linalg.qr(append_ones(x))
    diagonal: Tensor = basis.square().sum(1)
    return diagonal


@accepts_arrays
def leave_one_out_residuals(x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """y_i − f_{−i}(x_i) with f_{−i} fitted without point i, equal to r_i / (1 − h_ii) (Zhao sec. 3).

    The columns of (X 1) must be linearly independent, also without any one row.
    """
    if len(x) < x.shape[1] + 2:
        raise ValueError(f"{x.shape[1]} features need at least {x.shape[1] + 2} points; got {len(x)}")
    return (y - linear_model(x, *least_squares(x, y))) / (1 - leverages(x))


@dataclass(frozen=True)
class LinearRegression:
    """Ordinary least-squares estimator (book sec. 1.1)."""

    w: Float[Tensor, " features"]
    b: Float[Tensor, ""]

    @classmethod
    @accepts_arrays
    def fit(cls, x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]) -> "LinearRegression":
        return cls(*least_squares(x, y))

    @accepts_arrays
    def predict(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
        return linear_model(x, self.w, self.b)


@accepts_arrays
def polynomial_features(x: Float[Tensor, " batch"], degree: int) -> Float[Tensor, "batch degree"]:
    """Legendre polynomials P₁ … P_degree of x as columns: a linear model of these is a polynomial of that degree.

    Together with the intercept they span the same functions as x, x², …, x^degree, but are better conditioned on
    [−1, 1].
    """
    check_at_least_one(degree=degree)
    columns = [torch.ones_like(x), x]
    for k in range(1, degree):
        columns.append(((2 * k + 1) * x * columns[k] - k * columns[k - 1]) / (k + 1))
    return torch.stack(columns[1:], dim=1)
