"""One-step and n-step transitions for learning action values (book sec. 18.3)."""

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.rollout_batch import group_by_learner
from parnassus.reinforcement.tabular.markov_reward_process import check_discount


class Transitions(NamedTuple):
    """A batch of transitions of each learner.

    `rewards` are the discounted rewards of the next n steps, `discounts` γ^n, and `next_observations` the states after
    these steps; n is smaller where an episode ended before. `terminated` marks ends by the task, not by a time limit.

    >>> ones = torch.ones(1, 32)
    >>> states = torch.zeros(1, 32, 4)
    >>> Transitions(states, ones.long(), ones, 0.99 * ones, states, terminated=ones.bool()).rewards.shape
    torch.Size([1, 32])
    """

    observations: Float[Tensor, "learners rows features"]
    actions: Int[Tensor, "learners rows"]
    rewards: Float[Tensor, "learners rows"]
    discounts: Float[Tensor, "learners rows"]
    next_observations: Float[Tensor, "learners rows features"]
    terminated: Bool[Tensor, "learners rows"]


class NStepTransitions:
    """Converts experience, chunk by chunk, to n-step transitions (Sutton and Barto 2018, ch. 7).

        rewards = r_t + γ r_{t+1} + … + γ^{m−1} r_{t+m−1},   discounts = γ^m,   m = min(n, steps to the end)

    The last n − 1 steps of a chunk wait for the next chunk; they are part of `state_dict`.

    >>> NStepTransitions(3, gamma=0.99).n
    3
    """

    def __init__(self, n: int, *, gamma: float) -> None:
        check_at_least_one(n=n)
        check_discount(gamma)
        self.n, self.gamma = n, gamma
        self.waiting: Experience | None = None

    def __call__(self, experience: Experience) -> Transitions | None:
        """The transitions that are complete now; None while there are none."""
        parts = _parts(experience)
        if self.waiting is not None:
            parts = [torch.cat(pair) for pair in zip(_parts(self.waiting), parts, strict=True)]
        complete = len(parts[0]) - self.n + 1
        if self.n > 1:
            self.waiting = Experience(*(part[max(0, complete) :].clone() for part in parts))
        return self._accumulate(Experience(*parts), complete) if complete > 0 else None

    def _accumulate(self, experience: Experience, count: int) -> Transitions:
        active = torch.ones_like(experience.terminated[:count])
        terminated = torch.zeros_like(active)
        rewards, next_observations = torch.zeros_like(experience.rewards[:count]), experience.next_observations[:count]
        discounts = torch.ones_like(rewards)
        for ahead in range(self.n):
            now = slice(ahead, ahead + count)
            rewards = rewards + discounts * experience.rewards[now] * active
            discounts = torch.where(active, self.gamma * discounts, discounts)
            next_observations = torch.where(active[..., None], experience.next_observations[now], next_observations)
            terminated = terminated | (active & experience.terminated[now])
            active = active & ~(experience.terminated[now] | experience.truncated[now])
        starts = experience.observations[:count], experience.actions[:count]
        parts = (*starts, rewards, discounts, next_observations, terminated)
        return Transitions(*(group_by_learner(part) for part in parts))

    def state_dict(self) -> dict[str, object]:
        return {} if self.waiting is None else dict(vars(self.waiting))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.waiting = Experience(**{name: cast("Tensor", part) for name, part in state.items()}) if state else None


def _parts(experience: Experience) -> list[Tensor]:
    return [getattr(experience, field.name) for field in fields(experience)]
