"""Vectorised environments: tensor implementations, or Gymnasium's."""

from parnassus.reinforcement.environments.acrobot import Acrobot
from parnassus.reinforcement.environments.cart_pole import CartPole
from parnassus.reinforcement.environments.gymnasium import GymnasiumEnvironments
from parnassus.reinforcement.environments.interface import (
    Actions,
    BrokenEnvironmentError,
    Continuous,
    Discrete,
    Environments,
    Step,
)
from parnassus.reinforcement.environments.make import TENSOR_ENVIRONMENTS, make_environments
from parnassus.reinforcement.environments.mountain_car import MountainCar
from parnassus.reinforcement.environments.pendulum import Pendulum
from parnassus.reinforcement.environments.tensor_environments import Physics, PhysicsStep, TensorEnvironments

__all__ = [
    "TENSOR_ENVIRONMENTS",
    "Acrobot",
    "Actions",
    "BrokenEnvironmentError",
    "CartPole",
    "Continuous",
    "Discrete",
    "Environments",
    "GymnasiumEnvironments",
    "MountainCar",
    "Pendulum",
    "Physics",
    "PhysicsStep",
    "Step",
    "TensorEnvironments",
    "make_environments",
]
