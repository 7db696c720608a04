"""Collecting experience: a policy at work in many copies of an environment, and what it scored (book sec. 18.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import cast

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.reinforcement.environments.interface import Environments

RECENT = 100
"""Episodes whose returns say how a learner is doing."""


@dataclass(frozen=True)
class Experience:
    """What the copies of each learner saw, step by step.

    `led_to` is where a step led, before a new episode began there: the state whose value counts at a truncation.
    """

    observations: Float[Tensor, "steps learners copies features"]
    actions: Shaped[Tensor, "steps learners copies *action"]
    rewards: Float[Tensor, "steps learners copies"]
    terminated: Bool[Tensor, "steps learners copies"]
    truncated: Bool[Tensor, "steps learners copies"]
    led_to: Float[Tensor, "steps learners copies features"]


class Collector:
    """The environments of several learners, `copies` for each, where they stand and what their episodes returned.

    Everything here is in `state_dict`, so that an interrupted run goes on in the middle of its episodes.
    """

    def __init__(self, environments: Environments, learners: int = 1) -> None:
        if environments.copies % learners:
            raise ValueError(f"{environments.copies} copies cannot be shared by {learners} learners alike")
        self.environments, self.learners = environments, learners
        self.observation = self._apart(environments.reset())
        self.score = torch.zeros(environments.copies, device=self.observation.device)
        self.returns: list[list[float]] = [[] for _ in range(learners)]
        self.steps = self.episodes = 0

    @property
    def recent_returns(self) -> list[float]:
        """For each learner the mean over its last hundred episodes; not a number before its first has ended."""
        return [sum(own) / len(own) if own else nan for own in self.returns]

    @property
    def progress(self) -> dict[str, float]:
        """The same under names for a run's curves, counted from 1; nothing until every learner has ended an episode."""
        if not all(self.returns):
            return {}
        return {f"return/{index}": mean for index, mean in enumerate(self.recent_returns, 1)}

    @torch.no_grad()
    def collect(
        self, act: Callable[[Float[Tensor, "learners copies features"]], Shaped[Tensor, "..."]], steps: int
    ) -> Experience:
        """Act for so many steps in every copy."""
        seen: list[tuple[Tensor, ...]] = []
        for _ in range(steps):
            action = act(self.observation)
            observation, reward, terminated, truncated, led_to = self.environments.step(action.flatten(0, 1))
            seen.append((reward, terminated, truncated, led_to, self.observation, action))
            self.observation = self._apart(observation)
        *found, observations, actions = (torch.stack(column) for column in zip(*seen, strict=True))
        reward, terminated, truncated, led_to = found
        self._count(reward, terminated | truncated)
        return Experience(observations, actions, *(self._apart(part, axis=1) for part in found))

    def state_dict(self) -> dict[str, object]:
        return {
            "environments": self.environments.state_dict(),
            "observation": self.observation,
            "score": self.score,
            "returns": [list(own) for own in self.returns],
            "counts": [self.steps, self.episodes],
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.environments.load_state_dict(cast("Mapping[str, object]", state["environments"]))
        self.observation = cast("Tensor", state["observation"]).to(self.observation)
        self.score = cast("Tensor", state["score"]).to(self.score)
        self.returns = [list(own) for own in cast("list[list[float]]", state["returns"])]
        self.steps, self.episodes = cast("list[int]", state["counts"])

    def _count(self, rewards: Float[Tensor, "steps envs"], over: Bool[Tensor, "steps envs"]) -> None:
        copies, counted = over.shape[1] // self.learners, 0
        self.steps += len(rewards) * copies
        ends = over.any(1).nonzero().flatten().tolist() if bool(over.any()) else []
        for step in ends:
            self.score = self.score + rewards[counted : step + 1].sum(0)
            for copy in over[step].nonzero().flatten().tolist():
                own = self.returns[copy // copies]
                own.append(float(self.score[copy]))
                del own[:-RECENT]
                self.episodes += 1
            self.score, counted = self.score.masked_fill(over[step], 0.0), step + 1
        self.score = self.score + rewards[counted:].sum(0)

    def _apart(self, x: Tensor, axis: int = 0) -> Tensor:
        """Learners and their copies on axes of their own."""
        return x.view(*x.shape[:axis], self.learners, -1, *x.shape[axis + 1 :])
