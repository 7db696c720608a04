"""Autoregressive flows: inverse (IAF) and masked (MAF) autoregressive flow (book sec. 13.1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import check_at_least_one
from parnassus.flows.autoregressive.made import MADE
from parnassus.flows.autoregressive.synthesizers import Synthesizer
from parnassus.flows.flow import Chain, InverseTransform
from parnassus.flows.linear.linear_flow import Permutation


class AutoregressiveTransform(nn.Module):
    """The flow z′_i = τ(z_i; h_i), h_i = c_i(z_{1:i−1}), whose Jacobian is lower triangular (book eqs. 13.15-13.16).

        log |det J| = Σ_i log |∂τ/∂z_i (z_i; h_i)|
        z_i = τ⁻¹(z′_i; c_i(z_{1:i−1})),   i = 1, …, D in sequence

    `conditioner` computes all h_i, (batch, D) → (batch, D, synthesizer.size); h_i must not depend on z_j for j ≥ i, as
    in `MADE` or `RecurrentConditioner`. `forward` takes one pass through the conditioner, `inverse` takes D.

    >>> synthesizer = AffineSynthesizer()
    >>> transform = AutoregressiveTransform(MADE(3, synthesizer.size), synthesizer)
    >>> transform(torch.zeros(5, 3))[0].shape
    torch.Size([5, 3])
    """

    def __init__(self, conditioner: nn.Module, synthesizer: Synthesizer) -> None:
        super().__init__()
        self.conditioner = conditioner
        self.synthesizer = synthesizer

    def forward(self, z: Float[Tensor, "batch dim"]) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, " batch"]]:
        x, log_derivative = self.synthesizer(z, self.condition(z))
        return x, log_derivative.sum(1)

    def inverse(self, x: Float[Tensor, "batch dim"]) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, " batch"]]:
        z = torch.zeros_like(x)  # coordinates that are still zero do not affect h_i
        log_det = x.new_zeros(len(x))
        for i in range(x.shape[1]):
            z_i, log_derivative = self.synthesizer.inverse(x[:, i], self.condition(z)[:, i])
            z = torch.cat([z[:, :i], z_i[:, None], z[:, i + 1 :]], 1)
            log_det = log_det + log_derivative
        return z, log_det

    def condition(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim size"]:
        """The parameters h_i of the synthesizer for each coordinate."""
        h: Tensor = self.conditioner(z)
        if h.shape != (*z.shape, self.synthesizer.size):
            raise ValueError(
                f"the conditioner must return {self.synthesizer.size} values for each of {z.shape[1]} coordinates; "
                f"got shape {tuple(h.shape[1:])}"
            )
        return h


def inverse_autoregressive_flow(
    dim: int, synthesizer: Synthesizer, *, num_layers: int = 5, hidden_sizes: Sequence[int] = (64, 64)
) -> Chain:
    """IAF: sampling takes one pass per layer, the density of given data D passes (Kingma et al. 2016).

    The order of the coordinates is reversed between layers.
    """
    check_at_least_one(num_layers=num_layers)
    chain = Chain()
    for layer in range(num_layers):
        if layer:
            chain.append(Permutation.reversal(dim))
        chain.append(AutoregressiveTransform(MADE(dim, synthesizer.size, hidden_sizes=hidden_sizes), synthesizer))
    return chain


def masked_autoregressive_flow(
    dim: int, synthesizer: Synthesizer, *, num_layers: int = 5, hidden_sizes: Sequence[int] = (64, 64)
) -> InverseTransform:
    """MAF: the density of given data takes one pass per layer, sampling D passes (Papamakarios et al. 2017).

    It is the inverse of an IAF: the conditioners depend on x. Suited to maximum likelihood.
    """
    return InverseTransform(
        inverse_autoregressive_flow(dim, synthesizer, num_layers=num_layers, hidden_sizes=hidden_sizes)
    )
