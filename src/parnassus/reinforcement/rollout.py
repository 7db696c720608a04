"""The loop of agent and environment: state in, action out, reward and next state back (book sec. 18.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.walks import episode_starts


@dataclass(frozen=True)
class Rollout:
    """What many agents saw, step by step (book fig. 18.1).

    `rewards[t]` follows `actions[t]`: the figure calls it R_{t+1}. `following` is where a step led, before a new
    episode began there.
    """

    states: Int[Tensor, "steps envs"]
    actions: Int[Tensor, "steps envs"]
    rewards: Float[Tensor, "steps envs"]
    following: Int[Tensor, "steps envs"]
    terminated: Bool[Tensor, "steps envs"]
    truncated: Bool[Tensor, "steps envs"]


def rollout(
    process: MarkovDecisionProcess,
    policy: Float[Tensor, "states actions"],
    start: Float[Tensor, " states"],
    *,
    steps: int,
    envs: int,
    longest: int | None = None,
    generator: torch.Generator | None = None,
) -> Rollout:
    """`envs` agents that follow one policy, a new episode whenever one is over or has had `longest` steps."""
    process.require_policy(policy)
    if longest is not None and longest < 1:
        raise ValueError(f"an episode has at least one step; got longest={longest}")
    starts = episode_starts(process, start, steps=steps, learners=envs, generator=generator)
    now, age = starts[0], torch.zeros(envs, dtype=torch.int64, device=start.device)
    seen: list[tuple[Tensor, ...]] = []
    for step in range(steps):
        action = draw(policy[now], generator)
        reward, following = process.step(now, action, generator=generator)
        over = process.terminal[following]
        age += 1
        cut = torch.zeros_like(over) if longest is None else ~over & (age >= longest)
        seen.append((now, action, reward, following, over, cut))
        now = torch.where(over | cut, starts[step + 1], following)
        age = age.masked_fill(over | cut, 0)
    return Rollout(*(torch.stack(column) for column in zip(*seen, strict=True)))
