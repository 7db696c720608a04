"""Shapley values of linear models in closed form, features taken apart or as they hang together (book sec. 17.3).

f(x) = W x + c. A model of scikit-learn has W as `coef_` and c as `intercept_`, an `nn.Linear` as `weight` and `bias`.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.conditioning import solve_by_pseudo_inverse
from parnassus.shapley.attribution import Attribution
from parnassus.shapley.game import members
from parnassus.shapley.values import shapley_values

MOST = 16
"""Features whose coalitions are regressed on one by one: 65,536 regressions."""
TOGETHER = 2**12
"""Regressions that are solved at once."""


def explain_linear(
    weight: Float[Tensor, "outputs features"],
    bias: Float[Tensor, " outputs"],
    x: Float[Tensor, "rows features"],
    background: Float[Tensor, "others features"],
) -> Attribution:
    """φ_j = w_j (x_j − E b_j): what is not known comes from the background, whatever is known (book sec. 17.3)."""
    w, c, z, mean = checked(weight, bias, x, background)
    values = w * (z - mean)[:, None]
    return Attribution((c + w @ mean).expand(len(x), -1), values, torch.zeros_like(values), 0)


def explain_linear_given(
    weight: Float[Tensor, "outputs features"],
    bias: Float[Tensor, " outputs"],
    x: Float[Tensor, "rows features"],
    background: Float[Tensor, "others features"],
) -> Attribution:
    """Shapley values where what is not known is guessed from what is, z ~ N(μ, Σ) as the background (book sec. 17.3).

        E[f(z) | z_S = x_S] = f(μ) + a_S · (x_S − μ_S),   Σ_SS a_S = (Σ w)_S
        φ = A (x − μ),   A_ij = Σ_{S∌i} [a_{S∪i,j} − a_{S,j}] / (M C(M − 1, |S|))

    The best guess at f from the features S is a regression on them with coefficients a_S. It is linear in x, so A is
    found once for all rows, from 2^M regressions. Where nothing correlates, a_S is w on S and this is `explain_linear`.
    """
    w, c, z, mean = checked(weight, bias, x, background)
    features = w.shape[1]
    if len(background) < 2 or features > MOST:
        raise ValueError(
            f"a covariance needs two rows, and 2^M regressions at most {MOST} features; "
            f"got {len(background)} rows, {features} features"
        )
    covariance = torch.cov(background.to(w).mT).reshape(features, features)
    a = torch.cat([regressions(covariance, w, known) for known in members(features).to(w.device).split(TOGETHER)])
    A = shapley_values(a.movedim(0, -1))  # (outputs, features of x, players)
    values = torch.einsum("oji,rj->roi", A, z - mean)
    demand_possible(values.sum(-1), (z - mean) @ w.mT)
    return Attribution((c + w @ mean).expand(len(x), -1), values, torch.zeros_like(values), 0)


def regressions(
    covariance: Float[Tensor, "features features"],
    weight: Float[Tensor, "outputs features"],
    known: Bool[Tensor, "count features"],
) -> Float[Tensor, "count outputs features"]:
    """a_S for many S: the regression of w · z on what is known of z, with 0 for what is not.

    Rows and columns of Σ outside S are 0, and the pseudo-inverse leaves them so; it also does for features that repeat
    each other.
    """
    seen = known.to(weight)
    within = covariance * seen[:, :, None] * seen[:, None]
    towards = (covariance @ weight.mT) * seen[..., None]
    return solve_by_pseudo_inverse(within, towards).mT


def demand_possible(found: Float[Tensor, "rows outputs"], whole: Float[Tensor, "rows outputs"]) -> None:
    """Refuse a row off the plane in which a singular background lies: no guess leads to what the model says of it."""
    gap = (found - whole).abs().amax(1)
    if bool((gap > 1e-6 * whole.abs().amax(1).clamp(min=1e-6)).any()):
        row = int(gap.argmax())
        raise ValueError(
            f"row {row} cannot happen: the background is singular, and the row lies off its plane; "
            f"parts would miss its prediction by {float(gap[row]):.3g}"
        )


def checked(weight: Tensor, bias: Tensor, x: Tensor, background: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W, c, x and the mean of the background in float64, once they fit each other."""
    outputs, features = weight.shape
    if not features == x.shape[1] == background.shape[1] or len(bias) != outputs or not len(background):
        raise ValueError(
            "a linear model, rows and background must have the same features, and a bias an entry for each output; "
            f"got W {tuple(weight.shape)}, c {tuple(bias.shape)}, x {tuple(x.shape)}, "
            f"background {tuple(background.shape)}"
        )
    return weight.detach().double(), bias.detach().double(), x.double(), background.double().mean(0)
