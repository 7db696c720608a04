"""Evaluation of policies: returns of complete episodes, and statistics robust to single seeds."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.environments.interface import Environments, check_divisible, endless_episode_error


@runtime_checkable
class MultiLearnerExperiment(Protocol):
    """An experiment with several learners that act in the same environment."""

    @property
    def env(self) -> str: ...

    @property
    def num_learners(self) -> int: ...

    @property
    def n_eval_episodes(self) -> int: ...

    def make_environments(self, n_envs: int, device: torch.device | str = "cpu") -> Environments: ...

    def act(self, model: Any, x: Tensor, *, sample_actions: bool = False) -> Tensor: ...  # each its own kind of model


@torch.no_grad()
def episode_returns(
    environments: Environments,
    act: Callable[[Float[Tensor, "learners episodes features"]], Shaped[Tensor, "..."]],
    num_learners: int = 1,
) -> Float[Tensor, "learners episodes"]:
    """The return of the first complete episode of every environment."""
    check_divisible(environments.n_envs, num_learners)
    observation = environments.reset()
    total = torch.zeros(environments.n_envs, dtype=torch.float64, device=observation.device)
    active = torch.ones(environments.n_envs, dtype=torch.bool, device=observation.device)
    for _ in range(environments.max_episode_steps):
        action = act(observation.unflatten(0, (num_learners, -1)))
        observation, reward, terminated, truncated, _ = environments.step(action.flatten(0, 1))
        total += reward * active
        active &= ~(terminated | truncated)
        if not bool(active.any()):
            break
    else:
        raise endless_episode_error(environments.max_episode_steps)
    returns: Tensor = total.unflatten(0, (num_learners, -1))
    return returns


def interquartile_mean(scores: Float[Tensor, "*shape"]) -> Float[Tensor, ""]:
    """The mean of the middle half of the scores (Agarwal et al. 2021).

    If a quarter is not an integer number of scores, those at its border have fractional weights.
    """
    if scores.numel() == 0:
        raise ValueError("the interquartile mean needs at least one score; got none")
    ranked, count = scores.flatten().sort().values, scores.numel()
    edges = torch.arange(count + 1, dtype=ranked.dtype, device=ranked.device) / count
    weight = (edges[1:].clamp(max=0.75) - edges[:-1].clamp(min=0.25)).clamp(min=0)
    return (weight * ranked).sum() / weight.sum()


def bootstrap_interval(
    scores: Float[Tensor, " learners"],
    statistic: Callable[[Float[Tensor, " learners"]], Float[Tensor, ""]],
    *,
    level: float = 0.95,
    num_resamples: int = 2_000,
    generator: torch.Generator | None = None,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic over learners (Efron 1979).

    Learners differ only by their seeds, so the interval estimates the variation over seeds. With five learners it is
    somewhat too short; with one it is undefined.
    """
    if len(scores) < 2:
        raise ValueError(f"a bootstrap interval needs at least two learners; got {len(scores)}")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got level={level}")
    resamples = torch.randint(len(scores), (num_resamples, len(scores)), generator=generator).to(scores.device)
    values = torch.stack([statistic(each) for each in scores[resamples]])
    low, high = torch.quantile(values, torch.tensor([(1 - level) / 2, (1 + level) / 2]).to(values)).tolist()
    return low, high


def summarise_returns(returns: Float[Tensor, "learners episodes"], threshold: float | None) -> dict[str, float]:
    """Mean, interquartile mean and minimum over learners, and the fraction that reach the threshold."""
    means = returns.mean(1)
    solved = float((means >= threshold).double().mean()) if threshold is not None else 0.0
    return {
        "return_mean": float(means.mean()),
        "return_iqm": float(interquartile_mean(means)),
        "return_worst": float(means.min()),
        "solved": solved,
    }
