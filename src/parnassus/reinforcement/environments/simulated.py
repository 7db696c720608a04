"""Environments written in tensors: thousands of copies step at once, on any device (book sec. 18.1)."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.reinforcement.environments.interface import Actions, Continuous, Step


class Move(NamedTuple):
    """Where an action led, what it paid, and whether that was the end."""

    state: Float[Tensor, "copies state"]
    reward: Float[Tensor, " copies"]
    terminated: Bool[Tensor, " copies"]


@runtime_checkable
class Physics(Protocol):
    """The laws of a world, for many copies at once: how it begins, what is seen of it, what actions do.

    States are float64, as gymnasium has them, whose numbers these laws must give.
    """

    @property
    def features(self) -> int: ...

    @property
    def actions(self) -> Actions: ...

    @property
    def longest(self) -> int: ...

    def start(self, copies: int, device: torch.device) -> Float[Tensor, "copies state"]: ...

    def observe(self, state: Float[Tensor, "copies state"]) -> Float[Tensor, "copies features"]: ...

    def move(self, state: Float[Tensor, "copies state"], action: Shaped[Tensor, "copies *action"]) -> Move: ...


class Simulated:
    """Copies of a world whose laws are known; each begins again when its episode is over or has lasted `longest` steps.

    New episodes are drawn from torch's generator, so that seeding it makes everything repeat.
    """

    def __init__(self, physics: Physics, copies: int, *, device: torch.device | str = "cpu") -> None:
        if copies < 1:
            raise ValueError(f"at least one copy is needed; got copies={copies}")
        self.physics, self.copies, self.device = physics, copies, torch.device(device)
        self.features, self.actions, self.longest = physics.features, physics.actions, physics.longest
        self.state = torch.zeros(0, dtype=torch.float64)
        self.age = torch.zeros(0, dtype=torch.int64)

    def reset(self) -> Float[Tensor, "copies features"]:
        """New episodes everywhere; the first observations."""
        self.state = self.physics.start(self.copies, self.device)
        self.age = torch.zeros(self.copies, dtype=torch.int64, device=self.device)
        return self.physics.observe(self.state).float()

    def step(self, action: Shaped[Tensor, "copies *action"]) -> Step:
        """One action in every copy."""
        moved, reward, terminated = self.physics.move(self.state, _within(action, self.actions))
        self.age += 1
        truncated = (self.age >= self.longest) & ~terminated
        led_to = observation = self.physics.observe(moved).float()
        over = terminated | truncated
        if self.device.type != "cpu" or bool(over.any()):
            moved = torch.where(over[:, None], self.physics.start(self.copies, self.device), moved)
            self.age = self.age.masked_fill(over, 0)
            observation = self.physics.observe(moved).float()
        self.state = moved
        return Step(observation, reward.float(), terminated, truncated, led_to)

    def state_dict(self) -> dict[str, object]:
        return {"state": self.state.clone(), "age": self.age.clone()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.state = cast("Tensor", state["state"]).to(self.device)
        self.age = cast("Tensor", state["age"]).to(self.device)


def _within(action: Tensor, actions: Actions) -> Tensor:
    if not isinstance(actions, Continuous):
        return action
    low, high = (torch.tensor(bound, dtype=action.dtype, device=action.device) for bound in (actions.low, actions.high))
    return action.clamp(low, high)
