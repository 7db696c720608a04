"""The interface of vectorised environments: many copies that step together (book sec. 18.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.errors import UserError


class BrokenEnvironmentError(UserError):
    """An environment that cannot be used, or failed while in use."""


def endless_episode_error(steps: int) -> BrokenEnvironmentError:
    """The error for an episode that has not ended after this many steps although a complete one is needed."""
    return BrokenEnvironmentError(
        f"an episode has not ended after max_episode_steps={steps:,} steps: the environment must truncate it by then"
    )


def check_divisible(n_envs: int, num_learners: int) -> None:
    """Raise a ValueError unless every learner has the same number of environments."""
    if n_envs % num_learners:
        raise ValueError(f"n_envs must be divisible by num_learners; got n_envs={n_envs}, num_learners={num_learners}")


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … count − 1."""

    count: int


@dataclass(frozen=True)
class Continuous:
    """Actions are vectors within bounds; values outside are clipped."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def count(self) -> int:
        """The dimension of an action."""
        return len(self.low)


Actions: TypeAlias = Discrete | Continuous


class Step(NamedTuple):
    """The result of an action: next observation, reward, and whether the episode ended.

    An episode ends as `terminated` by the task or `truncated` by a time limit. There `next_observations` holds the last
    observation of the old episode, and `observation` the first of a new one; elsewhere they are equal.
    """

    observation: Float[Tensor, "envs features"]
    reward: Float[Tensor, " envs"]
    terminated: Bool[Tensor, " envs"]
    truncated: Bool[Tensor, " envs"]
    next_observations: Float[Tensor, "envs features"]


@runtime_checkable
class Environments(Protocol):
    """Copies of one environment that reset automatically when an episode ends.

    `state_dict` holds the complete state, so that a run can be interrupted at any step.
    """

    @property
    def n_envs(self) -> int: ...

    @property
    def features(self) -> int: ...

    @property
    def actions(self) -> Actions: ...

    @property
    def max_episode_steps(self) -> int: ...

    def reset(self) -> Float[Tensor, "envs features"]: ...

    def step(self, action: Shaped[Tensor, "envs *action"]) -> Step: ...

    def state_dict(self) -> Mapping[str, object]: ...

    def load_state_dict(self, state: Mapping[str, object]) -> None: ...
