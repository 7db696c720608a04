"""Ridge regression: least squares with a squared penalty on the slopes (book ex. 2.3, Zhao sec. 3)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.layers.linear_regression import LinearRegression, require_points


def ridge_regression(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], *, penalty: float
) -> LinearRegression:
    """The (w, b) that minimise 1/n Σ ½(wᵀx_i + b − y_i)² + λ/2 ‖w‖²; the intercept is free (Zhao sec. 3).

        (X_cᵀX_c/n + λI) w = X_cᵀy_c/n,   b = ȳ − x̄ᵀw

    X_c and y_c are centred. It is where descent with weight decay λ comes to rest. Books that write ‖Xw − y‖² + α‖w‖²
    have α = nλ; λ = 0 gives the least-squares fit of smallest norm.
    """
    u, s, v, mean_x, mean_y = _centred(x, y, penalty)
    w = v @ (_filter(s, len(x) * penalty) * (u.T @ (y - mean_y)))
    return LinearRegression(w, mean_y - mean_x @ w)


def ridge_path(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], *, penalties: Float[Tensor, " path"]
) -> Float[Tensor, "path features"]:
    """The slopes w(λ) for many penalties from one factorisation X_c = U diag(s) Vᵀ.

        w(λ) = V diag(s / (s² + nλ)) Uᵀ y_c

    Its norm falls as λ grows: no slope is ever pushed past 0, but single ones may grow on the way.
    """
    u, s, v, _, mean_y = _centred(x, y, float(penalties.min()))
    along = u.T @ (y - mean_y)
    factors = _filter(s, len(x) * penalties[:, None])
    return torch.einsum("pr,r,fr->pf", factors, along, v)


def effective_parameters(x: Float[Tensor, "batch features"], *, penalty: float) -> Float[Tensor, ""]:
    """Σ_j s_j² / (s_j² + nλ): how many slopes are in effect free; all of them at λ = 0, none as λ → ∞."""
    _require(penalty)
    squared: Tensor = torch.linalg.svdvals(x - x.mean(0)).square()
    return (squared / (squared + len(x) * penalty)).sum()


def _centred(
    x: Float[Tensor, "batch features"], y: Float[Tensor, " batch"], penalty: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """U, s, V of the centred rows, and the means of x and y."""
    require_points(x, y)
    _require(penalty)
    mean_x, mean_y = x.mean(0), y.mean()
    u, s, vh = torch.linalg.svd(x - mean_x, full_matrices=False)
    return u, s, vh.T, mean_x, mean_y


def _filter(s: Float[Tensor, " rank"], penalty: Tensor | float) -> Tensor:
    """The factor s / (s² + α), and 0 along directions in which the data do not vary."""
    varies = s > s.max() * max(s.shape) * torch.finfo(s.dtype).eps
    return torch.where(varies, s / torch.where(varies, s.square() + penalty, 1.0), 0.0)


def _require(penalty: float) -> None:
    if not penalty >= 0:
        raise ValueError(f"the penalty must not be negative; got penalty={penalty}")
