"""Linear SHAP: Shapley values of linear models in closed form, interventional and conditional (book sec. 17.3).

f(x) = W x + c. A scikit-learn model has W as `coef_` and c as `intercept_`, an `nn.Linear` as `weight` and `bias`.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.distributions.gaussian_conditioning import solve_by_pseudo_inverse
from parnassus.shapley.attributions.attribution import Attribution
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values

MAX_FEATURES = 16
"""Maximum number of features for conditional values: 65,536 regressions."""
REGRESSIONS_PER_BATCH = 2**12


def linear_shap(
    weight: Float[Tensor, "outputs features"],
    bias: Float[Tensor, " outputs"],
    x: Float[Tensor, "rows features"],
    background: Float[Tensor, "others features"],
) -> Attribution:
    """φ_j = w_j (x_j − E b_j): interventional Shapley values of a linear model (book sec. 17.3)."""
    w, c, z, mean = check_linear_model(weight, bias, x, background)
    values = w * (z - mean)[:, None]
    return Attribution((c + w @ mean).expand(len(x), -1), values, torch.zeros_like(values), 0)


def conditional_linear_shap(
    weight: Float[Tensor, "outputs features"],
    bias: Float[Tensor, " outputs"],
    x: Float[Tensor, "rows features"],
    background: Float[Tensor, "others features"],
) -> Attribution:
    """Conditional Shapley values of a linear model for z ~ N(μ, Σ) fitted to the background (book sec. 17.3).

        E[f(z) | z_S = x_S] = f(μ) + a_S · (x_S − μ_S),   Σ_SS a_S = (Σ w)_S
        φ = A (x − μ),   A_ij = Σ_{S∌i} [a_{S∪i,j} − a_{S,j}] / (M C(M − 1, |S|))

    The conditional expectation given the features S is a regression on them with coefficients a_S. It is linear in x,
    so A is computed once for all rows, from 2^M regressions. For uncorrelated features this is `linear_shap`.
    """
    w, c, z, mean = check_linear_model(weight, bias, x, background)
    features = w.shape[1]
    if len(background) < 2 or features > MAX_FEATURES:
        raise ValueError(
            f"conditional values need at least two background rows and at most {MAX_FEATURES} features; "
            f"got {len(background)} rows, {features} features"
        )
    covariance = torch.cov(background.to(w).mT).reshape(features, features)
    batches = all_coalitions(features).to(w.device).split(REGRESSIONS_PER_BATCH)
    a = torch.cat([conditional_coefficients(covariance, w, known) for known in batches])
    A = shapley_values(a.movedim(0, -1))  # (outputs, features of x, players)
    values = torch.einsum("oji,rj->roi", A, z - mean)
    check_rows_in_support(values.sum(-1), (z - mean) @ w.mT)
    return Attribution((c + w @ mean).expand(len(x), -1), values, torch.zeros_like(values), 0)


def conditional_coefficients(
    covariance: Float[Tensor, "features features"],
    weight: Float[Tensor, "outputs features"],
    known: Bool[Tensor, "count features"],
) -> Float[Tensor, "count outputs features"]:
    """a_S for many S: coefficients of the regression of w · z on the known features, 0 for the unknown.

    Rows and columns of Σ outside S are set to 0, and so remain in the pseudo-inverse, which also handles collinear
    features.
    """
    is_known = known.to(weight)
    within = covariance * is_known[:, :, None] * is_known[:, None]
    towards = (covariance @ weight.mT) * is_known[..., None]
    return solve_by_pseudo_inverse(within, towards).mT


def check_rows_in_support(total: Float[Tensor, "rows outputs"], change: Float[Tensor, "rows outputs"]) -> None:
    """Raise a ValueError for rows outside the support of a singular background, for which local accuracy fails."""
    gap = (total - change).abs().amax(1)
    if bool((gap > 1e-6 * change.abs().amax(1).clamp(min=1e-6)).any()):
        row = int(gap.argmax())
        raise ValueError(
            f"rows must lie in the support of the background, whose covariance is singular; row {row} does not, its "
            f"attributions would miss its prediction by {float(gap[row]):.3g}"
        )


def check_linear_model(
    weight: Tensor, bias: Tensor, x: Tensor, background: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W, c, x and the mean of the background in float64, after a check of their shapes."""
    outputs, features = weight.shape
    if not features == x.shape[1] == background.shape[1] or len(bias) != outputs or not len(background):
        raise ValueError(
            "a linear model, rows and background must have the same features, and a bias an entry for each output; "
            f"got W {tuple(weight.shape)}, c {tuple(bias.shape)}, x {tuple(x.shape)}, "
            f"background {tuple(background.shape)}"
        )
    return weight.detach().double(), bias.detach().double(), x.double(), background.double().mean(0)
