"""An actor's parameters as one vector per learner, for natural-gradient steps (book sec. 18.5)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.agents.actor_critic import ActorCritic


class ActorParameters:
    """θ of π_θ, one row per learner; the critic's weights, which share the stacks, are excluded.

    >>> from parnassus.reinforcement.environments.interface import Discrete
    >>> ActorParameters(ActorCritic(4, Discrete(2), num_learners=3)).read().shape[0]
    3
    """

    def __init__(self, model: ActorCritic) -> None:
        log_std = [] if model.log_std is None else [model.log_std]
        self.num_learners = model.num_learners
        self.parameters = [*model.hidden.parameters(), *model.actor_head.parameters(), *log_std]
        self.sizes = [part[0].numel() for part in self.parameters]

    @torch.no_grad()
    def read(self) -> Float[Tensor, "learners weights"]:
        """A copy of the current θ."""
        return self.flatten(self.parameters)

    @torch.no_grad()
    def write(self, weights: Float[Tensor, "learners weights"]) -> None:
        """Set θ."""
        for part, own in zip(self.parameters, weights.split(self.sizes, 1), strict=True):
            part[: self.num_learners] = own.view_as(part[: self.num_learners])

    def flatten(self, parts: Sequence[Tensor]) -> Float[Tensor, "learners weights"]:
        """Tensors of the parameters' shapes as one vector per learner: the actors come first in every stack."""
        return torch.cat([part[: self.num_learners].flatten(1) for part in parts], 1)

    def gradient(
        self, objective: Float[Tensor, ""], *, retain_graph: bool = False, create_graph: bool = False
    ) -> Float[Tensor, "learners weights"]:
        """∇_θ of a sum over learners, one row for each learner's θ; flags as in `torch.autograd.grad`."""
        return self.flatten(
            torch.autograd.grad(
                objective,
                self.parameters,
                retain_graph=retain_graph or create_graph,
                create_graph=create_graph,
                materialize_grads=True,
            )
        )
