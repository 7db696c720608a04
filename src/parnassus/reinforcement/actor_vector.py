"""An actor's weights as one vector for each learner, as steps along a direction need them (book sec. 18.5)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic


class ActorVector:
    """θ of π_θ, learner by learner; the critic's weights, which share the stacks, are left out."""

    def __init__(self, model: ActorCritic) -> None:
        spread = [] if model.log_std is None else [model.log_std]
        self.learners = model.learners
        self.parameters = [*model.hidden.parameters(), *model.choose.parameters(), *spread]
        self.sizes = [part[0].numel() for part in self.parameters]

    @torch.no_grad()
    def read(self) -> Float[Tensor, "learners weights"]:
        """θ as it is; a copy."""
        return self.joined(self.parameters)

    @torch.no_grad()
    def write(self, weights: Float[Tensor, "learners weights"]) -> None:
        """Make θ these."""
        for part, own in zip(self.parameters, weights.split(self.sizes, 1), strict=True):
            part[: self.learners] = own.view_as(part[: self.learners])

    def joined(self, parts: Sequence[Tensor]) -> Float[Tensor, "learners weights"]:
        """Numbers of the shapes of the weights, as vectors: the actor's come first in every stack."""
        return torch.cat([part[: self.learners].flatten(1) for part in parts], 1)

    def slope(
        self, of: Float[Tensor, ""], *, keep: bool = False, twice: bool = False
    ) -> Float[Tensor, "learners weights"]:
        """∇_θ of a sum over learners, each its own part; `keep` to ask again, `twice` for slopes of it."""
        return self.joined(
            torch.autograd.grad(
                of, self.parameters, retain_graph=keep or twice, create_graph=twice, materialize_grads=True
            )
        )
