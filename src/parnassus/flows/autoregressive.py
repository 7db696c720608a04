"""Autoregressive flows: each coordinate moved by a map that those before it have set (book sec. 13.1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.flow import Chain, Inverted
from parnassus.flows.linear import Permutation
from parnassus.flows.masked_network import MaskedNetwork
from parnassus.flows.synthesizers import Synthesizer


class Autoregressive(nn.Module):
    """The flow z′_i = τ(z_i; h_i), h_i = c_i(z_{1:i−1}), whose Jacobian is lower triangular (book eqs. 13.15-13.16).

        log |det J| = Σ_i log |∂τ/∂z_i (z_i; h_i)|
        z_i = τ⁻¹(z′_i; c_i(z_{1:i−1})),   one i after the other

    `conditioner` gives all h_i at once, (batch, D) → (batch, D, synthesizer.size), and must let no z_j with j ≥ i into
    h_i: a `MaskedNetwork` or a `RecurrentConditioner` does. Forwards takes one pass of it, backwards D.
    """

    def __init__(self, conditioner: nn.Module, synthesizer: Synthesizer) -> None:
        super().__init__()
        self.conditioner = conditioner
        self.synthesizer = synthesizer

    def forward(self, z: Float[Tensor, "batch dim"]) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, " batch"]]:
        x, log_slope = self.synthesizer(z, self.steering(z))
        return x, log_slope.sum(1)

    def inverse(self, x: Float[Tensor, "batch dim"]) -> tuple[Float[Tensor, "batch dim"], Float[Tensor, " batch"]]:
        z = torch.zeros_like(x)  # what is not known yet reaches no h that is used
        log_det = x.new_zeros(len(x))
        for i in range(x.shape[1]):
            known, log_slope = self.synthesizer.inverse(x[:, i], self.steering(z)[:, i])
            z = torch.cat([z[:, :i], known[:, None], z[:, i + 1 :]], 1)
            log_det = log_det + log_slope
        return z, log_det

    def steering(self, z: Float[Tensor, "batch dim"]) -> Float[Tensor, "batch dim size"]:
        """The numbers h_i that set the map of each coordinate."""
        h: Tensor = self.conditioner(z)
        if h.shape != (*z.shape, self.synthesizer.size):
            raise ValueError(
                f"the conditioner must give {self.synthesizer.size} numbers for each of {z.shape[1]} coordinates; "
                f"it gave {tuple(h.shape[1:])}"
            )
        return h


def inverse_autoregressive_flow(
    dim: int, synthesizer: Synthesizer, *, layers: int = 5, hidden: Sequence[int] = (64, 64)
) -> Chain:
    """IAF: samples in one pass a layer, the density of given data in D passes (Kingma et al. 2016).

    Between two layers the order of the coordinates is reversed, so that each comes after each other one somewhere.
    """
    if layers < 1:
        raise ValueError(f"a flow needs at least one layer; got layers={layers}")
    chain = Chain()
    for layer in range(layers):
        if layer:
            chain.append(Permutation.reversing(dim))
        chain.append(Autoregressive(MaskedNetwork(dim, synthesizer.size, hidden=hidden), synthesizer))
    return chain


def masked_autoregressive_flow(
    dim: int, synthesizer: Synthesizer, *, layers: int = 5, hidden: Sequence[int] = (64, 64)
) -> Inverted:
    """MAF: the density of given data in one pass a layer, samples in D passes (Papamakarios et al. 2017).

    It is the IAF walked the other way: here x is what the conditioners see. Fitting to data wants this one.
    """
    return Inverted(inverse_autoregressive_flow(dim, synthesizer, layers=layers, hidden=hidden))
