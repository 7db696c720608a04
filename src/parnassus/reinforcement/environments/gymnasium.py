"""Any environment of gymnasium, as copies that step together; installed with `pip install 'parnassus[gym]'`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from parnassus.reinforcement.environments.copies import Copies, Episode, actions_of, made
from parnassus.reinforcement.environments.interface import BrokenEnvironmentError, Discrete, Step
from parnassus.reinforcement.environments.workers import Workers

if TYPE_CHECKING:
    import gymnasium

ENDLESS = 20_000
"""Steps after which an episode counts as endless where gymnasium sets no limit."""

FORGOTTEN = 1_000
"""Steps that no episode in hand needs, after which they are forgotten."""


class Gymnasium:
    """Copies of one environment by its id, such as Acrobot-v1: in this process, or shared by `workers`.

    Each episode has a seed of its own, drawn from torch's generator. What is saved of an episode is this seed and the
    actions so far: it is played again when a run goes on, whatever the environment keeps inside. Workers change no
    number; there are as many as share the copies alike, and none where that is one alone.

    In this process they are looped over here (`Copies`). gymnasium's SyncVectorEnv is such a loop too, but cannot say
    in which copy and episode something broke, and adds 1.5 µs to the 6 µs that a step of CartPole-v1 takes, where this
    loop adds 1, checks included (eight copies, one core).
    """

    def __init__(
        self,
        name: str,
        copies: int,
        *,
        device: torch.device | str = "cpu",
        workers: int = 0,
        make: "Callable[[str], gymnasium.Env[Any, Any]]" = made,
    ) -> None:
        if copies < 1:
            raise ValueError(f"at least one copy is needed; got copies={copies}")
        if workers < 0:
            raise ValueError(f"workers are counted: 0 for none; got workers={workers}")
        self.name, self.copies, self.device = name, copies, torch.device(device)
        shared = max(count for count in range(1, max(1, workers) + 1) if copies % count == 0)
        here = Copies(name, [make(name) for _ in range(copies if shared == 1 else 1)])
        world, self.features = here.worlds[0], here.features
        self.space, self.actions = cast("Any", world.action_space), actions_of(world, name)
        self.longest = (world.spec.max_episode_steps if world.spec else None) or ENDLESS
        self.worlds: Copies | Workers = here if shared == 1 else Workers(here, copies, workers=shared)
        self.seeds, self.begun = [0] * copies, [0] * copies
        self.past: list[NDArray[Any]] = []
        self.seen = np.zeros((copies, self.features), dtype=np.float32)

    def reset(self) -> Float[Tensor, "copies features"]:
        """New episodes everywhere; the first observations."""
        return self._shown(self._begin(range(self.copies)))

    def step(self, action: Shaped[Tensor, "copies *action"]) -> Step:
        """One action in every copy."""
        asked = self._asked(action)
        self.past.append(asked)
        self.seen, rewards, terminated, truncated = self.worlds.step(asked)
        led_to = observation = self._shown(self.seen)
        over = terminated | truncated
        if np.count_nonzero(over):
            observation, truncated = self._shown(self._begin(np.flatnonzero(over).tolist())), truncated & ~terminated
        ends = self._shown(terminated), self._shown(truncated)
        return Step(observation, self._shown(rewards), *ends, led_to)

    def close(self) -> None:
        """Give back what the copies hold: processes, pictures."""
        self.worlds.close()

    def state_dict(self) -> dict[str, object]:
        past = np.stack(self.past) if self.past else np.zeros((0, self.copies))
        played = np.concatenate([past[begun:, copy] for copy, begun in enumerate(self.begun)])
        return {
            "seeds": torch.tensor(self.seeds),
            "lengths": torch.tensor([len(past) - begun for begun in self.begun]),
            "actions": torch.from_numpy(played),
            "seen": torch.from_numpy(self.seen.copy()),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Play the episodes in hand again; refuse to go on where one does not come to the same point."""
        seeds, lengths, actions, seen = (cast("Tensor", state[key]) for key in ("seeds", "lengths", "actions", "seen"))
        played = [own.numpy().copy() for own in actions.split(lengths.tolist())]
        past = np.zeros((int(lengths.max()), self.copies, *actions.shape[1:]), actions.numpy().dtype)
        self.seeds, self.begun = seeds.tolist(), [len(past) - len(own) for own in played]
        for copy, own in enumerate(played):
            past[self.begun[copy] :, copy] = own
        self.past = list(past)
        self.seen = self.worlds.begin([Episode(*both) for both in zip(self.seeds, played, strict=True)])
        if not np.array_equal(self.seen, seen.numpy()):
            raise BrokenEnvironmentError(
                f"{self.name} does not repeat itself from its seed: the run cannot go on as it was"
            )

    def _begin(self, copies: Sequence[int]) -> NDArray[np.float32]:
        episodes: list[Episode | None] = [None] * self.copies
        for copy, seed in zip(copies, torch.randint(2**31, (len(copies),)).tolist(), strict=True):
            self.seeds[copy], self.begun[copy], episodes[copy] = seed, len(self.past), Episode(seed)
        self.seen = self.worlds.begin(episodes)
        unused = min(self.begun)
        if unused >= FORGOTTEN:
            del self.past[:unused]
            self.begun = [begun - unused for begun in self.begun]
        return self.seen

    def _asked(self, action: Tensor) -> NDArray[Any]:
        """What was given, counted as the space does or cut off at its bounds; a copy, for it is kept."""
        given: NDArray[Any] = action.detach().cpu().numpy()
        if isinstance(self.actions, Discrete):
            return given + self.space.start if self.space.start else given.copy()
        within: NDArray[Any] = np.clip(given, self.actions.low, self.actions.high)
        return within.reshape(len(given), *self.space.shape).astype(self.space.dtype)

    def _shown(self, x: NDArray[Any]) -> Tensor:
        shown = torch.from_numpy(x)
        return shown if self.device.type == "cpu" else shown.to(self.device)
