"""What agents have in common: the worlds they live in, and for those with an actor how it acts (book sec. 18.1)."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Environments, environments


class Agent:
    """Several learners, each in copies of one environment: gymnasium's if `gym`, shared by `workers` processes."""

    env: str
    gym: bool
    workers: int
    learners: int

    def worlds(self, copies: int, device: torch.device | str = "cpu") -> Environments:
        return environments(self.env, copies, device=device, gym=self.gym, workers=self.workers)


class Actor(Agent):
    """An agent whose policy is a law over actions."""

    def act(
        self, model: ActorCritic, x: Float[Tensor, "learners batch features"], *, drawn: bool = False
    ) -> Shaped[Tensor, "learners batch *action"]:
        """What the learners do in states x: the likeliest action, or one drawn from the policy."""
        law = model.law(x)
        return law.draw() if drawn else law.best()
