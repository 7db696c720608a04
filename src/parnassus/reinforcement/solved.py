"""When an environment is solved: the mean return of a hundred episodes has reached its goal."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.collector import RECENT, Collector
from parnassus.reinforcement.evaluation import Learners, episode_returns, goal_of


class UntilSolved:
    """Whether all learners of an experiment have solved their environment.

    Asked after every update: the mean return of each learner's last hundred episodes, exploring, must have reached the
    goal, which costs nothing to see; only then are whole episodes played with the best action always, whose mean must
    reach it too. For the last episodes of a thousand copies may be just those few that did not fall. `returns` are
    those of the episodes played, once it is solved.
    """

    def __init__(self, experiment: Learners, device: torch.device | str = "cpu") -> None:
        goal = goal_of(experiment.env)
        if goal is None:
            raise ValueError(
                f"gymnasium does not say at which return {experiment.env} counts as solved: learn for a budget instead"
            )
        self.goal, self.experiment, self.device = goal, experiment, device
        self.returns: Float[Tensor, "learners episodes"] | None = None

    def reached(self, collector: Collector, model: Any) -> bool:  # of the kind that the experiment's `act` takes
        """Whether what was learned up to now is enough."""
        if not at_goal(collector, self.goal):
            return False
        told = self.experiment
        worlds = told.worlds(told.episodes * told.learners, self.device)
        returns = episode_returns(worlds, lambda x: told.act(model, x), told.learners)
        if bool((returns.mean(1) < self.goal).any()):
            return False
        self.returns = returns
        return True

    def story(self, steps: int, seconds: float) -> str:
        """How it went, in a sentence."""
        name, goal = self.experiment.env, f"{self.goal:g}"
        if self.returns is None:
            return (
                f"{name} is not solved after {steps:,} steps of each learner: not for all of them the mean return of "
                f"the last {RECENT} episodes, exploring, and of those judged below is at least {goal}."
            )
        return (
            f"{name} was solved after {steps:,} steps of each learner and {seconds:.1f} seconds: for all of them the "
            f"mean return of the last {RECENT} episodes, exploring, and of those judged below is at least {goal}."
        )


def at_goal(collector: Collector, goal: float) -> bool:
    """Whether every learner has had its hundred episodes, and the last hundred return `goal` or more in the mean."""
    return min(map(len, collector.returns)) >= RECENT and min(collector.recent_returns) >= goal
