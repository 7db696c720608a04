"""Environments by the names that gymnasium gives them."""

import torch

from parnassus.reinforcement.environments.acrobot import Acrobot
from parnassus.reinforcement.environments.cart_pole import CartPole
from parnassus.reinforcement.environments.gymnasium import Gymnasium
from parnassus.reinforcement.environments.interface import Environments
from parnassus.reinforcement.environments.mountain_car import MountainCar
from parnassus.reinforcement.environments.pendulum import Pendulum
from parnassus.reinforcement.environments.simulated import Physics, Simulated

SIMULATED: dict[str, Physics] = {
    "Acrobot-v1": Acrobot(),
    "CartPole-v1": CartPole(),
    "MountainCar-v0": MountainCar(),
    "Pendulum-v1": Pendulum(),
}
"""Those that are written in tensors too, and need no other package."""


def environments(
    name: str, copies: int, *, device: torch.device | str = "cpu", gym: bool = False, workers: int = 0
) -> Environments:
    """Copies of the environment `name`: in tensors where there is such a one, else, or if `gym`, gymnasium's.

    Those of gymnasium can be shared by `workers`, processes of their own; tensors need none.
    """
    if name in SIMULATED and not gym:
        return Simulated(SIMULATED[name], copies, device=device)
    return Gymnasium(name, copies, device=device, workers=workers)
