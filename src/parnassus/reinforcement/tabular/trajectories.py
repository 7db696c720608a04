"""Enumeration of all episodes of a small process, for exact expectations (book sec. 18.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.reinforcement.experience.returns import discounted_returns
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess

MAX_PATHS = 2_000_000


@dataclass(frozen=True)
class TrajectoryDistribution:
    """Every possible s_0, a_0, r_0, s_1, …, s_T with its probability.

    `environment_probability` is the factor that does not depend on the policy. A path that terminates before T stays
    there: those steps are not `active` and have reward 0.

    >>> one = torch.ones(1, 1)
    >>> paths = TrajectoryDistribution(torch.zeros(1, 2).long(), one.long(), one, one.bool(), torch.ones(1))
    >>> paths.rewards.sum().item()
    1.0
    """

    states: Int[Tensor, "paths time"]  # one more than steps
    actions: Int[Tensor, "paths steps"]
    rewards: Float[Tensor, "paths steps"]
    active: Bool[Tensor, "paths steps"]
    environment_probability: Float[Tensor, " paths"]

    def probabilities(self, policy: Float[Tensor, "states actions"]) -> Float[Tensor, " paths"]:
        """ρ(s_0) Π_t π(a_t|s_t) P(s_t, a_t, s_{t+1}), which sum to 1; differentiable with respect to π."""
        action_probabilities = policy[self.states[:, :-1], self.actions]
        return self.environment_probability * torch.where(self.active, action_probabilities, 1).prod(1)

    def returns(self, gamma: float) -> Float[Tensor, "paths steps"]:
        """G_t = Σ_{k≥t} γ^{k−t} r_k from every step of every path."""
        return discounted_returns(self.rewards.T, ~self.active.T, gamma=gamma).T


def enumerate_trajectories(
    process: MarkovDecisionProcess, start: Float[Tensor, " states"], horizon: int
) -> TrajectoryDistribution:
    """All paths of at most `horizon` steps."""
    check_distribution(start, "start")
    check_at_least_one(horizon=horizon)
    stay = torch.zeros_like(process.transition)
    stay[:, 0] = torch.eye(process.num_states, dtype=start.dtype, device=start.device)
    terminal = process.terminal[:, None, None]
    transition = torch.where(terminal, stay, process.transition * process.allowed[..., None])
    reward = process.reward.masked_fill(terminal, 0)
    states = start.nonzero()
    probability = start[states[:, 0]]
    actions, rewards = states[:, :0], probability[:, None][:, :0]
    for _ in range(horizon):
        outcomes = transition[states[:, -1]]
        path, action, next_state = outcomes.nonzero(as_tuple=True)
        if len(path) > MAX_PATHS:
            raise ValueError(
                f"at most {MAX_PATHS:,} paths are enumerated; got {len(path):,} after {actions.shape[1] + 1} steps"
            )
        step_reward = reward[states[path, -1], action, next_state]
        probability = probability[path] * outcomes[path, action, next_state]
        states = torch.cat([states[path], next_state[:, None]], 1)
        actions = torch.cat([actions[path], action[:, None]], 1)
        rewards = torch.cat([rewards[path], step_reward[:, None]], 1)
    return TrajectoryDistribution(states, actions, rewards, ~process.terminal[states[:, :-1]], probability)
