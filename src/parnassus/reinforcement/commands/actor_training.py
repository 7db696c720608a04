"""The start of the training of actor-critic learners, which A2C, PPO and TRPO share (book sec. 18.5)."""

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

    def check_single_process(self, processes: int) -> None: ...

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments: ...

    def model(self) -> ActorCritic: ...


@runtime_checkable
class NormalisingExperiment(ActorExperiment, Protocol):
    """The settings of an experiment that may normalise its rewards."""

    @property
    def gamma(self) -> float: ...

    @property
    def normalize(self) -> bool: ...


class ActorTraining(NamedTuple):
    """What a training loop updates; a resumed run continues with all of it."""

    model: ActorCritic
    optimizer: Optimizer
    collector: Collector


def prepare_actor_training(
    run: Run, experiment: ActorExperiment, make_optimizer: Callable[..., Optimizer]
) -> ActorTraining:
    """Environments, networks and optimiser."""
    experiment.check_single_process(run.world_size)
    environments = experiment.make_environments(experiment.n_envs * experiment.num_learners, run.device)
    collector = Collector(environments, experiment.num_learners)
    model, optimizer = run.prepare(run.build(experiment.model), make_optimizer)
    run.keep("collector", collector)
    return ActorTraining(model, optimizer, collector)


def prepare_reward_normaliser(run: Run, experiment: NormalisingExperiment) -> RewardNormaliser | None:
    """Running statistics of the rewards; None if they are not normalised."""
    if not experiment.normalize:
        return None
    normaliser = RewardNormaliser(experiment.num_learners, experiment.n_envs, experiment.gamma).to(run.device)
    run.keep("reward_normaliser", normaliser)
    return normaliser
