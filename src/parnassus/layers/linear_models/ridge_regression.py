"""Ridge regression: least squares with an L2 penalty on the weights (book ex. 2.3, Zhao sec. 3)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative
from parnassus.layers.linear_models.linear_regression import LinearRegression, check_regression_data


@accepts_arrays
def ridge_regression(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], *, penalty: float
) -> LinearRegression:
    """The (w, b) that minimise 1/n Σ ½(wᵀx_i + b − y_i)² + λ/2 ‖w‖²; the intercept is not penalised (Zhao sec. 3).

        (X_cᵀX_c/n + λI) w = X_cᵀy_c/n,   b = ȳ − x̄ᵀw

    X_c and y_c are centred. It is the fixed point of gradient descent with weight decay λ. In the notation
    ‖Xw − y‖² + α‖w‖², α = nλ; λ = 0 gives the minimum-norm least-squares fit.
    """
    u, s, v, mean_x, mean_y = _centred_svd(x, y, penalty)
    w = v @ (_filter_factors(s, len(x) * penalty) * (u.T @ (y - mean_y)))
    return LinearRegression(w, mean_y - mean_x @ w)


@accepts_arrays
def ridge_path(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], *, penalties: Float[Tensor, " path"]
) -> Float[Tensor, "path features"]:
    """The weights w(λ) for many penalties from one factorisation X_c = U diag(s) Vᵀ.

        w(λ) = V diag(s / (s² + nλ)) Uᵀ y_c

    The norm of w(λ) decreases in λ; single weights may increase.
    """
    u, s, v, _, mean_y = _centred_svd(x, y, float(penalties.min()))
    coordinates = u.T @ (y - mean_y)
    factors = _filter_factors(s, len(x) * penalties[:, None])
    return torch.einsum("pr,r,fr->pf", factors, coordinates, v)


@accepts_arrays
def effective_parameters(x: Float[Tensor, "batch features"], *, penalty: float) -> Float[Tensor, ""]:
    """Effective degrees of freedom Σ_j s_j² / (s_j² + nλ): the rank at λ = 0, 0 as λ → ∞."""
    check_non_negative(penalty=penalty)
    squared: Tensor = torch.linalg.svdvals(x - x.mean(0)).square()
    return (squared / (squared + len(x) * penalty)).sum()


def _centred_svd(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], penalty: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """U, s, V of the centred rows, and the means of x and y."""
    check_regression_data(x, y)
    check_non_negative(penalty=penalty)
    mean_x, mean_y = x.mean(0), y.mean()
    u, s, vh = torch.linalg.svd(x - mean_x, full_matrices=False)
    return u, s, vh.T, mean_x, mean_y


def _filter_factors(s: Float[Tensor, " rank"], penalty: Tensor | float) -> Tensor:
    """S / (s² + α), and 0 for vanishing singular values."""
    nonzero = s > s.max() * max(s.shape) * torch.finfo(s.dtype).eps
    return torch.where(nonzero, s / torch.where(nonzero, s.square() + penalty, 1.0), 0.0)
