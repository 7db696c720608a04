"""Transitions to learn action values from, over one reward or over several (book sec. 18.3)."""

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.reinforcement.collector import Experience
from parnassus.reinforcement.judged import by_learner


class Transitions(NamedTuple):
    """What followed an action, row by row, for each learner.

    `rewards` are those of the next n steps, discounted, `discounts` γ^n, and `led_to` where these steps led; n is
    smaller where an episode ended on the way, by the task itself where `terminated`.
    """

    observations: Float[Tensor, "learners rows features"]
    actions: Int[Tensor, "learners rows"]
    rewards: Float[Tensor, "learners rows"]
    discounts: Float[Tensor, "learners rows"]
    led_to: Float[Tensor, "learners rows features"]
    terminated: Bool[Tensor, "learners rows"]


class NSteps:
    """Experience, chunk by chunk, as transitions over n steps (Sutton and Barto 2018, ch. 7).

        rewards = r_t + γ r_{t+1} + … + γ^{m−1} r_{t+m−1},   discounts = γ^m,   m = min(n, steps to the end)

    The last n − 1 steps of a chunk must wait for what follows; they are kept here, and in `state_dict`.
    """

    def __init__(self, n: int, *, discount: float) -> None:
        if n < 1:
            raise ValueError(f"a transition needs at least one step; got n={n}")
        if not 0 <= discount <= 1:
            raise ValueError(f"the discount must be in [0, 1]; got discount={discount}")
        self.n, self.discount = n, discount
        self.waiting: Experience | None = None

    def __call__(self, experience: Experience) -> Transitions | None:
        """The transitions that are complete now; None while there are none."""
        parts = _parts(experience)
        if self.waiting is not None:
            parts = [torch.cat(pair) for pair in zip(_parts(self.waiting), parts, strict=True)]
        complete = len(parts[0]) - self.n + 1
        if self.n > 1:
            self.waiting = Experience(*(part[max(0, complete) :].clone() for part in parts))
        return self._over(Experience(*parts), complete) if complete > 0 else None

    def _over(self, seen: Experience, count: int) -> Transitions:
        going = torch.ones_like(seen.terminated[:count])
        terminated = torch.zeros_like(going)
        rewards, led_to = torch.zeros_like(seen.rewards[:count]), seen.led_to[:count]
        discounts = torch.ones_like(rewards)
        for ahead in range(self.n):
            now = slice(ahead, ahead + count)
            rewards = rewards + discounts * seen.rewards[now] * going
            discounts = torch.where(going, self.discount * discounts, discounts)
            led_to = torch.where(going[..., None], seen.led_to[now], led_to)
            terminated = terminated | (going & seen.terminated[now])
            going = going & ~(seen.terminated[now] | seen.truncated[now])
        began = seen.observations[:count], seen.actions[:count]
        return Transitions(*(by_learner(part) for part in (*began, rewards, discounts, led_to, terminated)))

    def state_dict(self) -> dict[str, object]:
        return {} if self.waiting is None else dict(vars(self.waiting))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.waiting = Experience(**{name: cast("Tensor", part) for name, part in state.items()}) if state else None


def _parts(experience: Experience) -> list[Tensor]:
    return [getattr(experience, field.name) for field in fields(experience)]
