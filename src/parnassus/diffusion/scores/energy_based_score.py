"""The score of an energy-based model, s = −∇f (book eqs. 13.79-13.82)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class EnergyBasedScore(nn.Module):
    """s(x) = −∇f(x) of an energy network f with one output per example (book eq. 13.82).

        p(x) = exp(−f(x)) / Z,   ∇ log p(x) = −∇f(x)

    The normalising constant Z is not needed. The field has no curl, unlike that of an unconstrained network.
    Activations must be twice differentiable: with ReLU the divergence of s is 0 almost everywhere.

    >>> score = EnergyBasedScore(nn.Linear(2, 1))
    >>> score(torch.zeros(5, 2)).shape
    torch.Size([5, 2])
    """

    def __init__(self, energy: nn.Module) -> None:
        super().__init__()
        self.energy = energy

    def unnormalised_log_prob(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """The unnormalised log-density −f(x) = log p(x) + log Z."""
        energy: Tensor = self.energy(x)
        if energy.numel() != len(x):
            raise ValueError(
                f"energy must return one value per example; got shape {tuple(energy.shape)} for {len(x)} examples"
            )
        return -energy.reshape(len(x))

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        training = torch.is_grad_enabled()
        with torch.enable_grad():
            point = x if x.requires_grad else x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(
                self.unnormalised_log_prob(point).sum(), point, create_graph=training, materialize_grads=True
            )
        return gradient
