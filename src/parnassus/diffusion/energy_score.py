"""A score that is a gradient: minus the slope of a learned energy (book eqs. 13.79-13.82)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class EnergyScore(nn.Module):
    """s(x) = −∇f(x) of a network f that gives one number an example (book eq. 13.82).

        p(x) = exp(−f(x)) / Z,   ∇ log p(x) = −∇f(x)

    Z is nowhere needed: a constant added to f changes nothing. Such a field has no curl, a free network's may have one.
    Activations must have a slope that changes: with ReLU the divergence of s is 0 almost everywhere.
    """

    def __init__(self, energy: nn.Module) -> None:
        super().__init__()
        self.energy = energy

    def unnormalised_log_prob(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """−f(x) = log p(x) + log Z."""
        energy: Tensor = self.energy(x)
        if energy.numel() != len(x):
            raise ValueError(f"an energy is one number an example; got shape {tuple(energy.shape)} for {len(x)}")
        return -energy.reshape(len(x))

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        training = torch.is_grad_enabled()
        with torch.enable_grad():
            point = x if x.requires_grad else x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(
                self.unnormalised_log_prob(point).sum(), point, create_graph=training, materialize_grads=True
            )
        return slope
