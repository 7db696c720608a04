"""How good a policy is: the returns of whole episodes, and means that one lucky seed cannot lift."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.environments.copies import made
from parnassus.reinforcement.environments.interface import BrokenEnvironmentError, Environments, endless

GOALS: dict[str, float | None] = {
    "Acrobot-v1": -100.0,
    "CartPole-v1": 475.0,
    "LunarLander-v3": 200.0,
    "MountainCar-v0": -110.0,
    "Pendulum-v1": None,
}
"""Mean returns of a hundred episodes at which gymnasium counts a task as solved, known here without it."""


def goal_of(name: str) -> float | None:
    """The mean return at which the environment of this name counts as solved; None where gymnasium names none."""
    if name in GOALS:
        return GOALS[name]
    try:
        world = made(name)
    except BrokenEnvironmentError:  # none of gymnasium's: it has nothing to say
        return None
    world.close()
    goal = world.spec.reward_threshold if world.spec is not None else None
    return None if goal is None else float(goal)


@runtime_checkable
class Learners(Protocol):
    """What has several learners that act in one kind of environment: any experiment with agents."""

    @property
    def env(self) -> str: ...

    @property
    def learners(self) -> int: ...

    @property
    def episodes(self) -> int: ...

    def worlds(self, copies: int, device: torch.device | str = "cpu") -> Environments: ...

    def act(self, model: Any, x: Tensor, *, drawn: bool = False) -> Tensor: ...  # each its own kind of model


@torch.no_grad()
def episode_returns(
    environments: Environments,
    act: Callable[[Float[Tensor, "learners episodes features"]], Shaped[Tensor, "..."]],
    learners: int = 1,
) -> Float[Tensor, "learners episodes"]:
    """The return of the first episode of every copy, from its beginning to its end or its limit of time."""
    if environments.copies % learners:
        raise ValueError(f"{environments.copies} copies cannot be shared by {learners} learners alike")
    observation = environments.reset()
    total = torch.zeros(environments.copies, dtype=torch.float64, device=observation.device)
    playing = torch.ones(environments.copies, dtype=torch.bool, device=observation.device)
    for _ in range(environments.longest):
        action = act(observation.unflatten(0, (learners, -1)))
        observation, reward, terminated, truncated, _ = environments.step(action.flatten(0, 1))
        total += reward * playing
        playing &= ~(terminated | truncated)
        if not bool(playing.any()):
            break
    else:
        raise endless(environments.longest)
    returns: Tensor = total.unflatten(0, (learners, -1))
    return returns


def interquartile_mean(scores: Float[Tensor, "*shape"]) -> Float[Tensor, ""]:
    """The mean of the middle half: the lowest and highest quarter are left out (Agarwal et al. 2021).

    Where a quarter is no whole number of scores, those at its border count in part.
    """
    if scores.numel() == 0:
        raise ValueError("there are no scores to take a mean of")
    ranked, count = scores.flatten().sort().values, scores.numel()
    edges = torch.arange(count + 1, dtype=ranked.dtype, device=ranked.device) / count
    weight = (edges[1:].clamp(max=0.75) - edges[:-1].clamp(min=0.25)).clamp(min=0)
    return (weight * ranked).sum() / weight.sum()


def summary(returns: Float[Tensor, "learners episodes"], goal: float | None) -> dict[str, float]:
    """What learners reached: the mean, that of the middle half of them, the worst, and the share that met the goal."""
    means = returns.mean(1)
    met = float((means >= goal).double().mean()) if goal is not None else 0.0
    return {
        "return_mean": float(means.mean()),
        "return_iqm": float(interquartile_mean(means)),
        "return_worst": float(means.min()),
        "solved": met,
    }
