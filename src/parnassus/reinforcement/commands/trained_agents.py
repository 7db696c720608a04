"""Agents of finished runs: their networks, their environments, and the returns of their episodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.reinforcement.environments import Environments
from parnassus.reinforcement.evaluation.episode_returns import episode_returns
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import find_run
from parnassus.train.devices import choose_device
from parnassus.train.execute import options_from
from parnassus.train.trained import TrainedRun

MAX_ENVIRONMENTS = 1_024
"""Maximum number of environments stepped at once; further episodes are played in successive rounds."""


@runtime_checkable
class AgentExperiment(Protocol):
    """An experiment whose model acts in an environment, with the most probable or with sampled actions."""

    @property
    def env(self) -> str: ...

    @property
    def use_gymnasium(self) -> bool: ...

    @property
    def num_learners(self) -> int: ...

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments: ...

    def act(
        self, model: nn.Module, x: Float[Tensor, "learners batch features"], *, sample_actions: bool = False
    ) -> Shaped[Tensor, "learners batch *action"]: ...


@dataclass(frozen=True)
class TrainedAgents:
    """The trained learners of one run, which act in parallel."""

    folder: Path
    experiment: AgentExperiment
    model: nn.Module
    device: torch.device
    sample_actions: bool = False

    @classmethod
    def from_run(cls, trained: TrainedRun, *, device: str = "auto", sample_actions: bool = False) -> "TrainedAgents":
        if not isinstance(trained.experiment, AgentExperiment):
            kind = trained.folder.experiment
            raise RunError(f"{trained.folder.path.name} is a run of {kind}, which trains no agent")
        place = choose_device(device)
        return cls(trained.folder.path, trained.experiment, trained.model.to(place), place, sample_actions)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def training_seed(self) -> int:
        return options_from(RunFolder(self.folder)).seed

    @torch.no_grad()
    def __call__(self, x: Float[Tensor, "learners batch features"]) -> Shaped[Tensor, "learners batch *action"]:
        return self.experiment.act(self.model, x, sample_actions=self.sample_actions)

    def returns(self, episodes: int, *, seed: int) -> Float[Tensor, "learners episodes"]:
        """Returns of complete episodes of every learner."""
        torch.manual_seed(seed)
        learners, rounds = self.experiment.num_learners, []
        per_round = max(1, MAX_ENVIRONMENTS // learners)
        for start in range(0, episodes, per_round):
            n_envs = min(episodes - start, per_round) * learners
            rounds.append(episode_returns(self.experiment.make_environments(n_envs, self.device), self, learners))
        return torch.cat(rounds, 1).cpu()


def find_agents(name: str, root: Path, *, device: str = "auto", sample_actions: bool = False) -> TrainedAgents:
    """The agents of the run called `name` in `root`."""
    return TrainedAgents.from_run(TrainedRun.open(find_run(root, name)), device=device, sample_actions=sample_actions)
