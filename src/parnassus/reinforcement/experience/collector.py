"""Collecting experience with a policy in many environments, and episode returns (book sec. 18.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import cast

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.reinforcement.environments.interface import Environments, check_divisible

RECENT = 100
"""Number of completed episodes over which a learner's return is averaged."""


@dataclass(frozen=True)
class Experience:
    """A rollout of each learner in its environments, step by step.

    `next_observations` are the successors of the steps, before any reset: the states whose values are used at
    a truncation.

    >>> environments = make_environments("CartPole-v1", 8)
    >>> experience = Collector(environments).collect(lambda x: torch.zeros(x.shape[:2], dtype=torch.int64), 5)
    >>> experience.observations.shape
    torch.Size([5, 1, 8, 4])
    """

    observations: Float[Tensor, "steps learners envs features"]
    actions: Shaped[Tensor, "steps learners envs *action"]
    rewards: Float[Tensor, "steps learners envs"]
    terminated: Bool[Tensor, "steps learners envs"]
    truncated: Bool[Tensor, "steps learners envs"]
    next_observations: Float[Tensor, "steps learners envs features"]


class Collector:
    """The environments of several learners, current observations and returns of completed episodes.

    All of this is in `state_dict`, so that an interrupted run continues in the middle of its episodes.

    >>> collector = Collector(make_environments("CartPole-v1", 8), num_learners=2)
    >>> experience = collector.collect(lambda x: torch.zeros(x.shape[:2], dtype=torch.int64), 5)
    >>> experience.rewards.shape
    torch.Size([5, 2, 4])
    """

    def __init__(self, environments: Environments, num_learners: int = 1) -> None:
        check_divisible(environments.n_envs, num_learners)
        self.environments, self.num_learners = environments, num_learners
        self.observation = self._split_learners(environments.reset())
        self.score = torch.zeros(environments.n_envs, device=self.observation.device)
        self.returns: list[list[float]] = [[] for _ in range(num_learners)]
        self.steps = self.episodes = 0

    @property
    def recent_returns(self) -> list[float]:
        """Mean return of each learner's last hundred episodes; NaN before its first episode has ended."""
        return [sum(own) / len(own) if own else nan for own in self.returns]

    @property
    def metrics(self) -> dict[str, float]:
        """The mean returns as metrics, learners numbered from 1; empty until every learner has completed an episode."""
        if not all(self.returns):
            return {}
        return {f"return/{index}": mean for index, mean in enumerate(self.recent_returns, 1)}

    @torch.no_grad()
    def collect(
        self, act: Callable[[Float[Tensor, "learners envs features"]], Shaped[Tensor, "..."]], steps: int
    ) -> Experience:
        """Act for this many steps in every environment."""
        rows: list[tuple[Tensor, ...]] = []
        for _ in range(steps):
            action = act(self.observation)
            observation, reward, terminated, truncated, next_observations = self.environments.step(action.flatten(0, 1))
            rows.append((reward, terminated, truncated, next_observations, self.observation, action))
            self.observation = self._split_learners(observation)
        *parts, observations, actions = (torch.stack(column) for column in zip(*rows, strict=True))
        reward, terminated, truncated, _ = parts
        self._count_episodes(reward, terminated | truncated)
        return Experience(observations, actions, *(self._split_learners(part, axis=1) for part in parts))

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

    def _count_episodes(self, rewards: Float[Tensor, "steps envs"], ended: Bool[Tensor, "steps envs"]) -> None:
        n_envs, counted = ended.shape[1] // self.num_learners, 0
        self.steps += len(rewards) * n_envs
        ends = ended.any(1).nonzero().flatten().tolist() if bool(ended.any()) else []
        for step in ends:
            self.score = self.score + rewards[counted : step + 1].sum(0)
            for env in ended[step].nonzero().flatten().tolist():
                own = self.returns[env // n_envs]
                own.append(float(self.score[env]))
                del own[:-RECENT]
                self.episodes += 1
            self.score, counted = self.score.masked_fill(ended[step], 0.0), step + 1
        self.score = self.score + rewards[counted:].sum(0)

    def _split_learners(self, x: Tensor, axis: int = 0) -> Tensor:
        """Separate axes for learners and their environments."""
        return x.view(*x.shape[:axis], self.num_learners, -1, *x.shape[axis + 1 :])
