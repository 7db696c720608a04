"""`parnassus evaluate` for agents: returns over episodes and over learners, with bootstrap intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.commands.trained_agents import TrainedAgents
from parnassus.reinforcement.evaluation.episode_returns import bootstrap_interval, interquartile_mean
from parnassus.reinforcement.evaluation.reward_thresholds import reward_threshold
from parnassus.train import DeviceName, NonNegative, Positive
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class EvaluateAgents:
    """Play episodes with the learners of every run; runs that differ only in their seed are also pooled."""

    n_eval_episodes: Positive[int] = 100  # episodes per learner
    stochastic: bool = False  # sample actions as in training, instead of taking the most probable one
    seed: NonNegative[int] = 0  # seed of the episodes
    device: DeviceName = "auto"  # device to use

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        agents = [TrainedAgents.from_run(run, device=self.device, sample_actions=self.stochastic) for run in runs]
        returns = [each.returns(self.n_eval_episodes, seed=self.seed) for each in agents]
        groups = [[index] for index in range(len(agents))] + groups_by_settings(agents)
        return [evaluation_row([agents[i] for i in group], [returns[i] for i in group]) for group in groups]


def groups_by_settings(agents: Sequence[TrainedAgents]) -> list[list[int]]:
    """Indices of runs that differ only in their training seed, for every group of at least two."""
    groups: list[list[int]] = []
    for index, each in enumerate(agents):
        for group in groups:
            seeds = {agents[other].training_seed for other in group}
            if agents[group[0]].experiment == each.experiment and each.training_seed not in seeds:
                group.append(index)
                break
        else:
            groups.append([index])
    return [group for group in groups if len(group) > 1]


def evaluation_row(agents: Sequence[TrainedAgents], returns: Sequence[Float[Tensor, "learners episodes"]]) -> ResultRow:
    """Statistics over learners, each represented by its mean over episodes; ci: 95 % interval of the IQM."""
    env = agents[0].experiment.env
    means = torch.cat(list(returns)).mean(1)
    threshold = reward_threshold(env)
    low, high = None, None
    if len(means) > 1:
        generator = torch.Generator().manual_seed(0)
        low, high = bootstrap_interval(means, interquartile_mean, generator=generator)
    return {
        "run": " + ".join(each.name for each in agents),
        "env": env,
        "learners": len(means),
        "n_eval_episodes": returns[0].shape[1],
        "mean": float(means.mean()),
        "std": float(means.std()) if len(means) > 1 else None,
        "iqm": float(interquartile_mean(means)),
        "ci_low": low,
        "ci_high": high,
        "solved": None if threshold is None else int((means >= threshold).sum()),
        "means": means.tolist(),
    }
