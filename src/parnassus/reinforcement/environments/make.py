"""Environments by their Gymnasium ids."""

import torch

from parnassus.reinforcement.environments.acrobot import Acrobot
from parnassus.reinforcement.environments.cart_pole import CartPole
from parnassus.reinforcement.environments.gymnasium import GymnasiumEnvironments
from parnassus.reinforcement.environments.interface import Environments
from parnassus.reinforcement.environments.mountain_car import MountainCar
from parnassus.reinforcement.environments.pendulum import Pendulum
from parnassus.reinforcement.environments.tensor_environments import Dynamics, TensorEnvironments

TENSOR_ENVIRONMENTS: dict[str, Dynamics] = {
    "Acrobot-v1": Acrobot(),
    "CartPole-v1": CartPole(),
    "MountainCar-v0": MountainCar(),
    "Pendulum-v1": Pendulum(),
}
"""Environments implemented in tensors, which need no other package."""


def make_environments(
    name: str,
    n_envs: int,
    *,
    device: torch.device | str = "cpu",
    use_gymnasium: bool = False,
    num_workers: int = 0,
) -> Environments:
    """Copies of an environment, in tensors if implemented and `use_gymnasium` is not set.

    Gymnasium environments can be shared by `num_workers` processes; tensor environments do not use workers.
    """
    if name in TENSOR_ENVIRONMENTS and not use_gymnasium:
        return TensorEnvironments(TENSOR_ENVIRONMENTS[name], n_envs, device=device)
    return GymnasiumEnvironments(name, n_envs, device=device, num_workers=num_workers)
