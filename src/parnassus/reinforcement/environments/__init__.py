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
from parnassus.reinforcement.environments.tensor_environments import Dynamics, DynamicsStep, TensorEnvironments

__all__ = [
    "TENSOR_ENVIRONMENTS",
    "Acrobot",
    "Actions",
    "BrokenEnvironmentError",
    "CartPole",
    "Continuous",
    "Discrete",
    "Dynamics",
    "DynamicsStep",
    "Environments",
    "GymnasiumEnvironments",
    "MountainCar",
    "Pendulum",
    "Step",
    "TensorEnvironments",
    "make_environments",
]
