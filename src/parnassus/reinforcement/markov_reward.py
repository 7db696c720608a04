"""Markov reward processes: a chain whose states pay, and what each state is worth (book sec. 18.2).

A state that is never left and pays nothing is an end: its value is 0, at any discount.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.probability import MarkovChain
from parnassus.probability.markov_chains import require_transition


@dataclass(frozen=True)
class MarkovRewardProcess:
    """A chain with a reward for being in each state, and a discount γ for what comes later (book sec. 18.2).

        v(s) = r(s) + γ Σ_s' P(s, s') v(s')                                        (book eqs. 18.1-18.5)
        v = (1 − γP)⁻¹ r

    Without discount, γ = 1, values are finite where every state comes to an end in the long run.
    """

    transition: Float[Tensor, "states states"]
    reward: Float[Tensor, " states"]
    discount: float

    def __post_init__(self) -> None:
        require_transition(self.transition, states=len(self.reward))
        require_discount(self.discount)

    @property
    def ends(self) -> Bool[Tensor, " states"]:
        """Which states are never left and pay nothing."""
        return (self.transition.diagonal() == 1) & (self.reward == 0)

    def chain(self, start: Float[Tensor, " states"]) -> MarkovChain:
        """The chain without its rewards."""
        return MarkovChain(start, self.transition)

    def values(self) -> Float[Tensor, " states"]:
        """What each state is worth, by solving Bellman's equations (book eqs. 18.1-18.5)."""
        return solve_bellman(self.transition, self.reward, self.discount, self.ends)

    def backup(self, values: Float[Tensor, "*batch states"]) -> Float[Tensor, "*batch states"]:
        """What states are worth if the next ones are worth v, r + γ P v; it draws any two v together by γ."""
        return self.reward + self.discount * values @ self.transition.mT

    def iterates(self, sweeps: int) -> Float[Tensor, "{sweeps}+1 states"]:
        """v_0 = 0 and v_{k+1} = r + γ P v_k, one below the other: v_k counts the first k rewards."""
        require_count("sweeps", sweeps)
        path = [torch.zeros_like(self.reward)]
        for _ in range(sweeps):
            path.append(self.backup(path[-1]))
        return torch.stack(path)

    def path_return(self, path: Int[Tensor, "*batch time"]) -> Float[Tensor, "*batch"]:
        """Σ_t γ^t r(s_t) along a path of states (book sec. 18.2)."""
        powers = self.discount ** torch.arange(path.shape[-1], dtype=self.reward.dtype, device=self.reward.device)
        return (self.reward[path] * powers).sum(-1)


def solve_bellman(
    transition: Float[Tensor, "*batch states states"],
    reward: Float[Tensor, "*batch states"],
    discount: float,
    ends: Bool[Tensor, "*batch states"],
) -> Float[Tensor, "*batch states"]:
    """The v with v = r + γ P v where a state goes on, and v = 0 where it ends; many processes at once."""
    onward = transition.masked_fill(ends[..., None], 0)
    if discount == 1:
        _require_ends(transition, ends)
    system = torch.eye(transition.shape[-1], dtype=transition.dtype, device=transition.device) - discount * onward
    values: Tensor = torch.linalg.solve(system, reward.masked_fill(ends, 0))
    return values


def require_discount(discount: float) -> None:
    """Raise a ValueError unless 0 ≤ γ ≤ 1."""
    if not 0 <= discount <= 1:
        raise ValueError(f"the discount must satisfy 0 ≤ γ ≤ 1; got discount={discount}")


def require_count(name: str, count: int) -> None:
    """Raise a ValueError if a number of steps is negative."""
    if count < 0:
        raise ValueError(f"{name} must not be negative; got {name}={count}")


def _require_ends(transition: Tensor, ends: Tensor) -> None:
    """Raise a ValueError where a state cannot come to an end, however lucky: γ = 1 would give it no value."""
    follows = (transition.detach() > 0).to(transition)
    lucky = ends
    for _ in range(transition.shape[-1]):
        before, lucky = lucky, ends | ((follows @ lucky[..., None].to(transition))[..., 0] > 0)
        if torch.equal(before, lucky):
            break
    if not bool(lucky.all()):
        stuck = int((~lucky).reshape(-1, transition.shape[-1]).any(0).nonzero()[0])
        raise ValueError(
            f"without discount every state must be able to come to an end; state {stuck} never does: "
            "take a discount below 1"
        )
