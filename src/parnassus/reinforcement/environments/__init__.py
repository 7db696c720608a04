"""Environments: what an agent acts in; in tensors, or gymnasium's."""

from parnassus.reinforcement.environments.acrobot import Acrobot
from parnassus.reinforcement.environments.by_name import SIMULATED, environments
from parnassus.reinforcement.environments.cart_pole import CartPole
from parnassus.reinforcement.environments.gymnasium import Gymnasium
from parnassus.reinforcement.environments.interface import (
    Actions,
    BrokenEnvironmentError,
    Continuous,
    Discrete,
    Environments,
    Step,
)
from parnassus.reinforcement.environments.mountain_car import MountainCar
from parnassus.reinforcement.environments.pendulum import Pendulum
from parnassus.reinforcement.environments.simulated import Move, Physics, Simulated

__all__ = [
    "SIMULATED",
    "Acrobot",
    "Actions",
    "BrokenEnvironmentError",
    "CartPole",
    "Continuous",
    "Discrete",
    "Environments",
    "Gymnasium",
    "MountainCar",
    "Move",
    "Pendulum",
    "Physics",
    "Simulated",
    "Step",
    "environments",
]
