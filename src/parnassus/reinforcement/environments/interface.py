"""What an environment is to an agent: many copies that step together (book sec. 18.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from jaxtyping import Bool, Float, Shaped
from torch import Tensor


class BrokenEnvironmentError(RuntimeError):
    """An environment that cannot be used, or broke while in use, in a sentence."""


def endless(steps: int) -> BrokenEnvironmentError:
    """What to raise where a whole episode is wanted, and after so many steps there is none."""
    return BrokenEnvironmentError(
        f"an episode is not over after {steps:,} steps: an environment that may go on for ever needs a limit of time, "
        "max_episode_steps where it is registered"
    )


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … count − 1."""

    count: int


@dataclass(frozen=True)
class Continuous:
    """Actions are vectors within bounds, one number a direction; what lies outside is cut off at them."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.low)


Actions: TypeAlias = Discrete | Continuous


class Step(NamedTuple):
    """What an action brings: a reward, where it led, and what to act on next.

    The two differ where an episode is over: `terminated` by the task itself, `truncated` by a limit of time. There
    `led_to` is the last observation of the old episode, and `observation` the first of a new one.
    """

    observation: Float[Tensor, "copies features"]
    reward: Float[Tensor, " copies"]
    terminated: Bool[Tensor, " copies"]
    truncated: Bool[Tensor, " copies"]
    led_to: Float[Tensor, "copies features"]


@runtime_checkable
class Environments(Protocol):
    """Copies of one environment that begin a new episode by themselves when one is over.

    `state_dict` is all that is needed to go on from here, so that a run can be interrupted at any step.
    """

    @property
    def copies(self) -> int: ...

    @property
    def features(self) -> int: ...

    @property
    def actions(self) -> Actions: ...

    @property
    def longest(self) -> int: ...

    def reset(self) -> Float[Tensor, "copies features"]: ...

    def step(self, action: Shaped[Tensor, "copies *action"]) -> Step: ...

    def state_dict(self) -> Mapping[str, object]: ...

    def load_state_dict(self, state: Mapping[str, object]) -> None: ...
