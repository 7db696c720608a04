"""Kernel SHAP: Shapley values as a weighted regression on who is present (book sec. 17.4; Lundberg and Lee 2017)."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.coalitions import Asked, drawn_coalitions, shapley_kernel
from parnassus.shapley.values import Estimate, widened

SMALL = 1e-6
"""Directions whose share of the regression's weight is less are not seen by it: all players at once, for one."""
MANY = 1024
"""Pairs from which errors are as good as known."""


@runtime_checkable
class Solver(Protocol):
    """Shapley values from the worths of coalitions: `regressed`, or `adjusted`, which learns the games as well."""

    def __call__(
        self,
        asked: Asked,
        worth: Float[Tensor, "*games count"],
        nobody: Float[Tensor, "*games"],
        everybody: Float[Tensor, "*games"],
    ) -> Estimate: ...


def regressed(
    asked: Asked,
    worth: Float[Tensor, "*games count"],
    nobody: Float[Tensor, "*games"],
    everybody: Float[Tensor, "*games"],
) -> Estimate:
    """The φ that minimises Σ_z π(z)/p(z) (v(z) − v(∅) − Σ_j φ_j z_j)², with Σ_j φ_j = v(all) − v(∅) (book eq. 17.9).

    π is infinite for nobody and for everybody, so both are met exactly, as constraints. p(z) is the chance that z was
    asked; where it is 1, nothing is left to chance. Several sets of coalitions stand before the games of each: worths
    are then (sets, games, count). Errors are infinite where there are not more pairs than the regression needs.
    """
    equal = (everybody - nobody) / asked.coalitions.shape[-1]
    if asked.coalitions.shape[-1] == 1:
        return Estimate(equal[..., None], torch.zeros_like(equal[..., None]))
    pairs = Pairs.of(asked, worth)
    odd = pairs.odd(worth, equal)
    values = odd @ pairs.pull
    left_out = (odd - values @ pairs.centred.mT) / pairs.free
    return Estimate(values + equal[..., None], pairs.errors(left_out))


class Pairs(NamedTuple):
    """The regression for pairs of complements: of a game only its odd part, ½ (v(z) − v(not z)), moves it.

    With equal shares taken off, φ = Σ odd · pull, where pull = w Pz (Σ w Pz zᵀP)⁺, w = 2 π(z)/p(z), P = I − J/M: only
    directions that sum to 0 are left.
    """

    centred: Float[Tensor, "*sets pairs players"]
    pull: Float[Tensor, "*sets pairs players"]
    size: Float[Tensor, " pairs"]
    chance: Float[Tensor, " pairs"]

    @classmethod
    def of(cls, asked: Asked, like: Tensor) -> "Pairs":
        """The regression on these coalitions, for all games on them; sets have one each."""
        half = asked.coalitions.chunk(2, -2)[0]
        players = half.shape[-1]
        number = half.reshape(-1, *half.shape[-2:])[0].sum(-1)  # all sets have the same sizes
        size, chance = number.to(like), asked.chance[: len(number)].to(like)
        weight = 2 * shapley_kernel(players).to(like)[number.to(like.device)] / chance
        centred = half.to(like) - (size / players)[:, None]
        weighed = weight[:, None] * centred
        inverse = torch.linalg.pinv(centred.mT @ weighed, rtol=SMALL, hermitian=True)
        return cls(centred, weighed @ inverse, size, chance)

    def odd(
        self, worth: Float[Tensor, "*games count"], equal: Float[Tensor, "*games"]
    ) -> Float[Tensor, "*games pairs"]:
        """½ (v(z) − v(not z)) less equal shares of those who are in z: what is to be explained."""
        having, lacking = worth.chunk(2, -1)
        return (having - lacking.flip(-1)) / 2 - equal[..., None] * (self.size - self.centred.shape[-1] / 2)

    @property
    def free(self) -> Float[Tensor, "*sets pairs"]:
        """1 − leverage: what a pair misses in the regression, as a share of what it misses when left out of it."""
        free: Tensor = 1 - torch.linalg.vecdot(self.pull, self.centred).clamp(max=0.95)
        return free if free.ndim == 1 else free[..., None, :]  # for all games of a set

    def errors(self, left_out: Float[Tensor, "*games pairs"]) -> Float[Tensor, "*games players"]:
        """√Var of φ, from what the pairs miss when left out: where one was asked with chance p, 1 − p of its square.

        Left out, a pair is missed by the error of the regression too, hence `free` (White's estimate, MacKinnon 1985).
        """
        if self.pull.shape[-2] < self.pull.shape[-1] and bool((self.chance < 1).any()):
            return left_out.new_full((*left_out.shape[:-1], self.pull.shape[-1]), inf)
        return (((1 - self.chance) * self.free * left_out.square()) @ self.pull.square()).sqrt()

    def freedom(self) -> Float[Tensor, " players"]:
        """Degrees of freedom of each error: a χ² with as many has the mean and the variance of its square.

        For Σ_i a_i e_i² with e = (I − H) ε, H = centred · pull, that is (Σ_i a_i (1 − h_i))² / Σ_ik a_i a_k R_ik R_ki,
        R = I − H (Bell and McCaffrey 2002). Of many pairs only R_ii counts. Infinite where nothing is left to chance.
        """
        own: Tensor = 1 - torch.linalg.vecdot(self.pull, self.centred).clamp(max=0.95)
        weight = (1 - self.chance)[:, None] * self.pull.square() / own[:, None]
        mean, twice = (weight * own[:, None]).sum(0), (weight * own[:, None]).square().sum(0)
        if len(own) <= MANY:
            hat = self.centred @ self.pull.mT
            twice = twice + (weight * ((hat * hat.mT).fill_diagonal_(0) @ weight)).sum(0)
        freedom: Tensor = torch.where(mean > 0, mean.square() / twice.clamp(min=1e-300), inf)
        return freedom


def kernel_shap(
    worth: Callable[[Bool[Tensor, "count players"]], Float[Tensor, "*games count"]],
    players: int,
    budget: int,
    *,
    solve: Solver = regressed,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Shapley values and their standard errors from about `budget` coalitions; exact once it reaches 2^M − 2.

    Errors that rest on few pairs are `widened`.

    `worth` gives v of many coalitions at once, of one game or of several that share them.
    """
    ends = worth(torch.tensor([[False] * players, [True] * players]))
    asked = drawn_coalitions(players, budget, generator=generator)
    inner = worth(asked.coalitions) if len(asked.coalitions) else ends[..., :0]
    found = solve(asked, inner, ends[..., 0], ends[..., 1])
    if players < 2:
        return found
    return Estimate(found.values, widened(found.errors, Pairs.of(asked, inner).freedom()))


def limiting_inverse(players: int) -> Float[Tensor, "players players"]:
    """(XᵀWX)⁻¹ → I + (I − J)/(M − 1), a limit as everybody's weight grows, not an approximation (book eq. 17.13)."""
    if players < 2:
        raise ValueError(f"at least two players are needed; got players={players}")
    eye = torch.eye(players, dtype=torch.float64)
    return eye + (eye - 1) / (players - 1)
