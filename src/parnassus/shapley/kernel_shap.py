"""Kernel SHAP: Shapley values as a weighted regression on who is present (book sec. 17.4; Lundberg and Lee 2017)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.coalitions import Asked, drawn_coalitions, shapley_kernel
from parnassus.shapley.values import Estimate

SMALL = 1e-6
"""Directions whose share of the regression's weight is less are not seen by it: all players at once, for one."""


def regressed(
    asked: Asked,
    worth: Float[Tensor, "*games count"],
    nobody: Float[Tensor, "*games"],
    everybody: Float[Tensor, "*games"],
) -> Estimate:
    """The φ that minimises Σ_z π(z)/p(z) (v(z) − v(∅) − Σ_j φ_j z_j)², with Σ_j φ_j = v(all) − v(∅) (book eq. 17.9).

    π is infinite for nobody and for everybody, so both are met exactly, as constraints. With equal shares taken off,
    only the directions that sum to 0 are left: P = I − J/M. p(z) is the chance that z was asked; where it is 1, nothing
    is left to chance. The errors are those of a sum over a sample without replacement, to first order.
    """
    z = asked.coalitions.to(worth)
    players = z.shape[1]
    equal = ((everybody - nobody) / players)[..., None]
    if players == 1:
        return Estimate(equal, torch.zeros_like(equal))
    size = asked.coalitions.sum(1)
    weight = shapley_kernel(players).to(worth)[size] / asked.chance.to(worth)
    left = worth - nobody[..., None] - equal * size.to(worth)  # what equal shares do not explain
    centred = z - z.mean(1, keepdim=True)  # z P
    gram = torch.linalg.pinv(centred.mT @ (weight[:, None] * centred), rtol=SMALL, hermitian=True)
    values = (left * weight) @ centred @ gram
    influence = centred @ gram
    fitted = (weight * torch.linalg.vecdot(influence, centred)).clamp(
        max=0.9
    )  # each pulls the regression towards itself
    missed = (left - values @ centred.mT) / (1 - fitted)
    return Estimate(values + equal, _errors(asked, weight * missed, influence))


def _errors(asked: Asked, score: Tensor, influence: Tensor) -> Tensor:
    """√Var of the sum over pairs of score · influence, where each pair was asked with chance p: 1 − p of its square."""
    half = score.shape[-1] // 2
    parts = score[..., :half, None] * influence[:half] + score[..., half:, None] * influence[half:]
    luck = 1 - asked.chance[:half].to(score)
    return (luck[:, None] * parts.square()).sum(-2).sqrt()


def kernel_shap(
    worth: Callable[[Bool[Tensor, "count players"]], Float[Tensor, "*games count"]],
    players: int,
    budget: int,
    *,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Shapley values and their standard errors from about `budget` coalitions; exact once it reaches 2^M − 2.

    `worth` gives v of many coalitions at once, of one game or of several that share them.
    """
    ends = worth(torch.tensor([[False] * players, [True] * players]))
    asked = drawn_coalitions(players, budget, generator=generator)
    inner = worth(asked.coalitions) if len(asked.coalitions) else ends[..., :0]
    return regressed(asked, inner, ends[..., 0], ends[..., 1])


def limiting_inverse(players: int) -> Float[Tensor, "players players"]:
    """(XᵀWX)⁻¹ → I + (I − J)/(M − 1), a limit as everybody's weight grows, not an approximation (book eq. 17.13)."""
    if players < 2:
        raise ValueError(f"at least two players are needed; got players={players}")
    eye = torch.eye(players, dtype=torch.float64)
    return eye + (eye - 1) / (players - 1)
