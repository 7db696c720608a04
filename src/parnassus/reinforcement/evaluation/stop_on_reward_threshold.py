"""Early stopping when the mean return of a hundred episodes reaches a threshold."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.evaluation.episode_returns import MultiLearnerExperiment, episode_returns
from parnassus.reinforcement.evaluation.reward_thresholds import reward_threshold
from parnassus.reinforcement.experience.collector import RECENT, Collector


class StopOnRewardThreshold:
    """Checks after every update whether all learners of an experiment have solved their environment.

    The mean return of each learner's last hundred training episodes must reach the threshold, which needs no further
    episodes; only then are evaluation episodes with the most probable actions run, whose mean must reach it too. (With
    a thousand environments, the last hundred completed episodes are biased towards short ones.) `returns` are those of
    the evaluation, once solved.

    >>> from parnassus.reinforcement.experiments.ppo import Experiment
    >>> stop = StopOnRewardThreshold(Experiment(env="CartPole-v1", num_learners=2))
    >>> stop.threshold
    475.0
    """

    def __init__(self, experiment: MultiLearnerExperiment, device: torch.device | str = "cpu") -> None:
        threshold = reward_threshold(experiment.env)
        if threshold is None:
            raise ValueError(
                f"gymnasium defines no reward threshold for {experiment.env}: train for total_timesteps instead"
            )
        self.threshold, self.experiment, self.device = threshold, experiment, device
        self.returns: Float[Tensor, "learners episodes"] | None = None

    def is_solved(self, collector: Collector, model: Any) -> bool:  # of the kind that the experiment's `act` takes
        """Whether all learners have solved the environment."""
        if not has_reached_threshold(collector, self.threshold):
            return False
        experiment = self.experiment
        environments = experiment.make_environments(experiment.n_eval_episodes * experiment.num_learners, self.device)
        returns = episode_returns(environments, lambda x: experiment.act(model, x), experiment.num_learners)
        if bool((returns.mean(1) < self.threshold).any()):
            return False
        self.returns = returns
        return True

    def describe(self, steps: int, seconds: float) -> str:
        """The outcome in a sentence."""
        name, after = self.experiment.env, f"after {steps:,} steps of each learner"
        criterion = (
            f"a mean return of at least {self.threshold:g} in every learner's last {RECENT} training episodes and in "
            "its evaluation episodes below"
        )
        if self.returns is None:
            return f"{name} is not solved {after}. The criterion: {criterion}."
        return f"{name} was solved {after} and {seconds:.1f} seconds. The criterion: {criterion}."


def has_reached_threshold(collector: Collector, threshold: float) -> bool:
    """Whether the mean return of every learner's last hundred episodes reaches the threshold."""
    return min(map(len, collector.returns)) >= RECENT and min(collector.recent_returns) >= threshold
