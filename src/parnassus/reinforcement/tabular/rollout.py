"""The loop of agent and environment on a finite process (book sec. 18.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.epsilon_greedy_learners import sample_episode_starts
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess


@dataclass(frozen=True)
class Rollout:
    """States, actions and rewards of several agents, step by step (book fig. 18.1).

    `rewards[t]` follows `actions[t]`: the figure calls it R_{t+1}. `next_states` are the successors of the steps,
    before any reset.

    >>> zeros, done = torch.zeros(5, 2, dtype=torch.int64), torch.zeros(5, 2, dtype=torch.bool)
    >>> Rollout(zeros, zeros, torch.ones(5, 2), zeros, done, done).rewards.sum().item()
    10.0
    """

    states: Int[Tensor, "steps envs"]
    actions: Int[Tensor, "steps envs"]
    rewards: Float[Tensor, "steps envs"]
    next_states: Int[Tensor, "steps envs"]
    terminated: Bool[Tensor, "steps envs"]
    truncated: Bool[Tensor, "steps envs"]


def rollout(
    process: MarkovDecisionProcess,
    policy: Float[Tensor, "states actions"],
    start: Float[Tensor, " states"],
    *,
    steps: int,
    n_envs: int,
    max_episode_steps: int | None = None,
    generator: torch.Generator | None = None,
) -> Rollout:
    """Follow a policy in `n_envs` copies, which restart at terminal states or time limits."""
    process.check_policy(policy)
    if max_episode_steps is not None:
        check_at_least_one(max_episode_steps=max_episode_steps)
    starts = sample_episode_starts(process, start, steps=steps, num_learners=n_envs, generator=generator)
    state, age = starts[0], torch.zeros(n_envs, dtype=torch.int64, device=start.device)
    rows: list[tuple[Tensor, ...]] = []
    for step in range(steps):
        action = sample_categorical(policy[state], generator)
        reward, next_state = process.step(state, action, generator=generator)
        terminated = process.terminal[next_state]
        age += 1
        at_limit = torch.zeros_like(terminated) if max_episode_steps is None else age >= max_episode_steps
        truncated = ~terminated & at_limit
        rows.append((state, action, reward, next_state, terminated, truncated))
        state = torch.where(terminated | truncated, starts[step + 1], next_state)
        age = age.masked_fill(terminated | truncated, 0)
    return Rollout(*(torch.stack(column) for column in zip(*rows, strict=True)))
