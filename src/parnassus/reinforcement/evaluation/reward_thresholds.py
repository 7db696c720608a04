"""Mean returns at which Gymnasium considers an environment solved."""

from parnassus.reinforcement.environments.gymnasium_serial import make_gymnasium
from parnassus.reinforcement.environments.interface import BrokenEnvironmentError

REWARD_THRESHOLDS: dict[str, float | None] = {
    "Acrobot-v1": -100.0,
    "CartPole-v1": 475.0,
    "LunarLander-v3": 200.0,
    "MountainCar-v0": -110.0,
    "Pendulum-v1": None,
}
"""Thresholds of the mean return of a hundred episodes, available without Gymnasium."""


def reward_threshold(name: str) -> float | None:
    """The mean return at which the environment is considered solved; None if Gymnasium defines none."""
    if name in REWARD_THRESHOLDS:
        return REWARD_THRESHOLDS[name]
    try:
        environment = make_gymnasium(name)
    except BrokenEnvironmentError:  # not a Gymnasium environment
        return None
    environment.close()
    threshold = environment.spec.reward_threshold if environment.spec is not None else None
    return None if threshold is None else float(threshold)
