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

    def demand_one_process(self, processes: int) -> None:
        """Refuse several processes under torchrun, which would part silently.

        Slopes that are written out, and steps along the natural gradient, never pass the door at which those of several
        processes are averaged: each would train weights of its own, and those of the first alone be kept.
        """
        if processes > 1:
            raise ValueError(
                f"agents learn in one process, not in {processes}: instead of torchrun, share gymnasium's copies by "
                "--workers, or step more of them at once by --copies, in tensors on --device cuda"
            )


class Actor(Agent):
    """An agent whose policy is a law over actions."""

    def actor_critic(self, *, normalised: bool = False) -> ActorCritic:
        """An actor and a critic for each learner, of the environment's sizes."""
        world = self.worlds(1)
        return ActorCritic(world.features, world.actions, learners=self.learners, normalised=normalised)

    def act(
        self, model: ActorCritic, x: Float[Tensor, "learners batch features"], *, drawn: bool = False
    ) -> Shaped[Tensor, "learners batch *action"]:
        """What the learners do in states x: the likeliest action, or one drawn from the policy."""
        law = model.law(x)
        return law.draw() if drawn else law.best()
