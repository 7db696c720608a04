"""Tensor environments: thousands of copies are stepped at once, on any device (book sec. 18.1)."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.reinforcement.environments.interface import Actions, Continuous, Step


class DynamicsStep(NamedTuple):
    """Next states, rewards and whether the episodes terminated."""

    state: Float[Tensor, "envs state"]
    reward: Float[Tensor, " envs"]
    terminated: Bool[Tensor, " envs"]


@runtime_checkable
class Dynamics(Protocol):
    """The dynamics of an environment for many copies at once: initial states, observations, transitions.

    States are float64, as in gymnasium, whose values the dynamics must reproduce.
    """

    @property
    def features(self) -> int: ...

    @property
    def actions(self) -> Actions: ...

    @property
    def max_episode_steps(self) -> int: ...

    def sample_initial_states(self, n_envs: int, device: torch.device) -> Float[Tensor, "envs state"]: ...

    def observe(self, state: Float[Tensor, "envs state"]) -> Float[Tensor, "envs features"]: ...

    def step(self, state: Float[Tensor, "envs state"], action: Shaped[Tensor, "envs *action"]) -> DynamicsStep: ...


class TensorEnvironments:
    """Copies of an environment in tensors, reset at the end of an episode or its time limit.

    Initial states are drawn from torch's generator, so that results are reproducible by its seed.
    """

    def __init__(self, dynamics: Dynamics, n_envs: int, *, device: torch.device | str = "cpu") -> None:
        check_at_least_one(n_envs=n_envs)
        self.dynamics, self.n_envs, self.device = dynamics, n_envs, torch.device(device)
        self.features, self.actions = dynamics.features, dynamics.actions
        self.max_episode_steps = dynamics.max_episode_steps
        self.state = torch.zeros(0, dtype=torch.float64)
        self.age = torch.zeros(0, dtype=torch.int64)

    def reset(self) -> Float[Tensor, "envs features"]:
        """Start new episodes in all environments; return the first observations."""
        self.state = self.dynamics.sample_initial_states(self.n_envs, self.device)
        self.age = torch.zeros(self.n_envs, dtype=torch.int64, device=self.device)
        return self.dynamics.observe(self.state).float()

    def step(self, action: Shaped[Tensor, "envs *action"]) -> Step:
        """Take one action in every environment."""
        state, reward, terminated = self.dynamics.step(self.state, _clip(action, self.actions))
        self.age += 1
        truncated = (self.age >= self.max_episode_steps) & ~terminated
        next_observations = observation = self.dynamics.observe(state).float()
        ended = terminated | truncated
        if self.device.type != "cpu" or bool(ended.any()):
            state = torch.where(ended[:, None], self.dynamics.sample_initial_states(self.n_envs, self.device), state)
            self.age = self.age.masked_fill(ended, 0)
            observation = self.dynamics.observe(state).float()
        self.state = state
        return Step(observation, reward.float(), terminated, truncated, next_observations)

    def state_dict(self) -> dict[str, object]:
        return {"state": self.state.clone(), "age": self.age.clone()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        self.state = cast("Tensor", state["state"]).to(self.device)
        self.age = cast("Tensor", state["age"]).to(self.device)


def _clip(action: Tensor, actions: Actions) -> Tensor:
    if not isinstance(actions, Continuous):
        return action
    low, high = (torch.tensor(bound, dtype=action.dtype, device=action.device) for bound in (actions.low, actions.high))
    return action.clamp(low, high)
