"""The start of the training of actor-critic learners, which A2C and PPO share (book sec. 18.5)."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch.optim import Optimizer

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Environments
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser
from parnassus.train import Run


@runtime_checkable
class ActorExperiment(Protocol):
    """The settings of an experiment that the training starts from."""

    @property
    def n_envs(self) -> int: ...

    @property
    def num_learners(self) -> int: ...

    @property
    def gamma(self) -> float: ...

    @property
    def normalize(self) -> bool: ...

    def check_single_process(self, processes: int) -> None: ...

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments: ...

    def model(self) -> ActorCritic: ...


class ActorTraining(NamedTuple):
    """What a training loop updates; a resumed run continues with all of it."""

    model: ActorCritic
    optimizer: Optimizer
    collector: Collector
    normaliser: RewardNormaliser | None


def prepare_actor_training(
    run: Run, experiment: ActorExperiment, make_optimizer: Callable[..., Optimizer]
) -> ActorTraining:
    """Environments, networks, optimiser, and running statistics of the rewards if they are normalised."""
    experiment.check_single_process(run.world_size)
    environments = experiment.make_environments(experiment.n_envs * experiment.num_learners, run.device)
    collector = Collector(environments, experiment.num_learners)
    model, optimizer = run.prepare(run.build(experiment.model), make_optimizer)
    run.keep("collector", collector)
    if not experiment.normalize:
        return ActorTraining(model, optimizer, collector, None)
    normaliser = RewardNormaliser(experiment.num_learners, experiment.n_envs, experiment.gamma).to(run.device)
    run.keep("reward_normaliser", normaliser)
    return ActorTraining(model, optimizer, collector, normaliser)
