"""All episodes of a small process, one by one, so that means over episodes are sums (book sec. 18.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.probability.simplex import require_distribution
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.returns import discounted_returns

MOST_PATHS = 2_000_000


@dataclass(frozen=True)
class Trajectories:
    """Every s_0, a_0, r_0, s_1, …, s_T that can happen, and the part of its probability that no policy changes.

    A path that came to an end before T stays there: those steps are not `live`, and pay nothing.
    """

    states: Int[Tensor, "paths time"]  # one more than steps
    actions: Int[Tensor, "paths steps"]
    rewards: Float[Tensor, "paths steps"]
    live: Bool[Tensor, "paths steps"]
    chance: Float[Tensor, " paths"]

    def probabilities(self, policy: Float[Tensor, "states actions"]) -> Float[Tensor, " paths"]:
        """ρ(s_0) Π_t π(a_t|s_t) P(s_t, a_t, s_{t+1}): they sum to 1; differentiable in π."""
        chosen = policy[self.states[:, :-1], self.actions]
        return self.chance * torch.where(self.live, chosen, 1).prod(1)

    def returns(self, discount: float) -> Float[Tensor, "paths steps"]:
        """G_t = Σ_{k≥t} γ^{k−t} r_k from every step of every path."""
        return discounted_returns(self.rewards.T, ~self.live.T, discount=discount).T


def trajectories(process: MarkovDecisionProcess, start: Float[Tensor, " states"], horizon: int) -> Trajectories:
    """All paths of at most `horizon` steps."""
    require_distribution(start, "start")
    if horizon < 1:
        raise ValueError(f"a path has at least one step; got horizon={horizon}")
    stay = torch.zeros_like(process.transition)
    stay[:, 0] = torch.eye(process.states, dtype=start.dtype, device=start.device)
    ended = process.terminal[:, None, None]
    law = torch.where(ended, stay, process.transition * process.allowed[..., None])
    pays = process.reward.masked_fill(ended, 0)
    states = start.nonzero()
    chance = start[states[:, 0]]
    actions, rewards = states[:, :0], chance[:, None][:, :0]
    for _ in range(horizon):
        ahead = law[states[:, -1]]
        path, action, following = ahead.nonzero(as_tuple=True)
        if len(path) > MOST_PATHS:
            raise ValueError(
                f"at most {MOST_PATHS:,} paths are listed; after {actions.shape[1] + 1} steps: {len(path):,}"
            )
        paid = pays[states[path, -1], action, following]
        chance = chance[path] * ahead[path, action, following]
        states = torch.cat([states[path], following[:, None]], 1)
        actions = torch.cat([actions[path], action[:, None]], 1)
        rewards = torch.cat([rewards[path], paid[:, None]], 1)
    return Trajectories(states, actions, rewards, ~process.terminal[states[:, :-1]], chance)
