"""Agents of finished runs at work again: who they are, where they act, and what their episodes return."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.reinforcement.environments import Environments
from parnassus.reinforcement.evaluation import episode_returns
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder, find_run
from parnassus.train.devices import choose_device
from parnassus.train.trained import Trained

AT_ONCE = 1_024
"""Copies of an environment that are played side by side; more episodes come one round after the other."""


@runtime_checkable
class Plays(Protocol):
    """An experiment whose model acts in an environment: what it does in states, at its best or `drawn`."""

    @property
    def env(self) -> str: ...

    @property
    def gym(self) -> bool: ...

    @property
    def learners(self) -> int: ...

    def worlds(self, copies: int, device: torch.device | str = "cpu") -> Environments: ...

    def act(
        self, model: nn.Module, x: Float[Tensor, "learners batch features"], *, drawn: bool = False
    ) -> Shaped[Tensor, "learners batch *action"]: ...


@dataclass(frozen=True)
class Player:
    """The learners of one run, trained, all of which act at once."""

    folder: Path
    experiment: Plays
    model: nn.Module
    device: torch.device
    drawn: bool = False

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def seed(self) -> int:
        """Of its training."""
        options = RunFolder(self.folder).read_json("run.json")["options"]
        return int(cast("dict[str, int]", options)["seed"])

    @torch.no_grad()
    def __call__(self, x: Float[Tensor, "learners batch features"]) -> Shaped[Tensor, "learners batch *action"]:
        return self.experiment.act(self.model, x, drawn=self.drawn)

    def returns(self, episodes: int, *, seed: int) -> Float[Tensor, "learners episodes"]:
        """What whole episodes of every learner return."""
        torch.manual_seed(seed)
        learners, found = self.experiment.learners, []
        for begun in range(0, episodes, max(1, AT_ONCE // learners)):
            copies = min(episodes - begun, max(1, AT_ONCE // learners)) * learners
            found.append(episode_returns(self.experiment.worlds(copies, self.device), self, learners))
        return torch.cat(found, 1).cpu()


def find_player(name: str, root: Path, *, device: str = "auto", drawn: bool = False) -> Player:
    """The agents that a run in `root` trained, or a sentence where it trained none."""
    folder = find_run(root, name)
    trained, kind = Trained.open(folder), folder.read_json("run.json")["experiment"]
    if not isinstance(trained.experiment, Plays):
        raise RunError(f"{folder.path.name} is a run of {kind}, which trains no agent that could play")
    place = choose_device(device)
    return Player(folder.path, trained.experiment, trained.model.to(place), place, drawn)
