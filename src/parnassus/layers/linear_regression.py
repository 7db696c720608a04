"""The linear model, its least-squares fit in closed form, and its minibatch step (book secs. 1.2, 1.3, Zhao sec. 3)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.optim.gradient_descent import gradient_step
from parnassus.optim.weight_decay import decayed_step


def linear_model(
    x: Float[Tensor, "*batch features"], w: Float[Tensor, " features"], b: Float[Tensor, ""]
) -> Float[Tensor, "*batch"]:
    """wᵀx + b of one point x, or X w + b·1 of all rows of X at once (book eqs. 1.1, 1.2, Zhao eqs. 4-5)."""
    return x @ w + b


def least_squares(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, " features"], Float[Tensor, ""]]:
    """The (w, b) that minimise ‖X w + b·1 − y‖², in one step (book sec. 1.3); the shortest where several do."""
    require_points(x, y)
    solution = shortest_solution(with_ones(x), y)
    return solution[:-1], solution[-1]


def shortest_solution(design: Float[Tensor, "rows columns"], y: Float[Tensor, " rows"]) -> Float[Tensor, " columns"]:
    """The θ of least ‖A θ − y‖, and of least ‖θ‖ among those: A⁺ y.

        A = U S Vᵀ,   A⁺ = V S⁺ Uᵀ

    By singular values, never by forming AᵀA, which would square the condition number. torch's own `lstsq` is not used:
    where columns of A depend on each other, its default on the CPU stops well above the least error.
    """
    u, s, v = torch.linalg.svd(design, full_matrices=False)
    counts = s > max(design.shape) * torch.finfo(s.dtype).eps * s[0]
    solution: Tensor = v.mT @ torch.where(counts, (u.mT @ y) / s, 0.0)
    return solution


def require_points(x: Float[Tensor, "batch features"], y: Shaped[Tensor, "rows *target"]) -> None:
    """Refuse to fit what no line fits: no points, a point without its y, numbers that are none."""
    if len(x) == 0:
        raise ValueError("a fit needs at least one point; got none")
    if len(x) != len(y):
        raise ValueError(f"x and y must have as many rows; got {len(x)} and {len(y)}")
    if not bool(x.isfinite().all() & y.isfinite().all()):
        raise ValueError("a fit needs finite numbers; x or y holds NaN or infinite ones")


def with_ones(x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features_and_one"]:
    """(X 1): a column of ones, whose weight is the intercept."""
    return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def linear_sgd_step(
    w: Float[Tensor, " features"],
    b: Float[Tensor, ""],
    x: Float[Tensor, "batch features"],
    y: Float[Tensor, " batch"],
    *,
    rate: float,
    decay: float = 0.0,
) -> tuple[Float[Tensor, " features"], Float[Tensor, ""]]:
    """One step of minibatch descent on ½(wᵀx + b − y)², written out (Zhao sec. 3).

        w ← (1 − ηλ) w − η/|B| Σ_{i∈B} x_i (wᵀx_i + b − y_i)
        b ← b − η/|B| Σ_{i∈B} (wᵀx_i + b − y_i)

    λ = `decay` shrinks the weights and spares the intercept. Printed, the step of b begins with w, and the decayed
    step of w loses its factor 1 − ηλ.
    """
    residual = linear_model(x, w, b) - y
    return decayed_step(w, residual @ x / len(x), rate=rate, decay=decay), gradient_step(b, residual.mean(), rate)


def leverages(x: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
    """h_ii of the hat matrix H = X̃ (X̃ᵀX̃)⁻¹ X̃ᵀ, X̃ = (X 1): how much each point's own y moves its fitted value."""
    basis, _ = torch.linalg.qr(with_ones(x))
    diagonal: Tensor = basis.square().sum(1)
    return diagonal


def leave_one_out_residuals(x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """y_i − f_{−i}(x_i), f_{−i} fitted without point i: r_i / (1 − h_ii), n fits for the price of one (Zhao sec. 3).

    The columns of (X 1) must be independent, and remain so without any one point.
    """
    if len(x) < x.shape[1] + 2:
        raise ValueError(f"leaving one out of {len(x)} points leaves too few for {x.shape[1]} slopes and an intercept")
    return (y - linear_model(x, *least_squares(x, y))) / (1 - leverages(x))


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
