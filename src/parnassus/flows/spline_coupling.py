"""Couplings that move their half by any synthesizer, splines above all (Durkan et al. 2019)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.flow import Chain
from parnassus.flows.synthesizers import SplineSynthesizer, Synthesizer
from parnassus.layers import Activation, mlp, relu


class SynthesizerCoupling(nn.Module):
    """Keep some coordinates and move each of the rest by τ(·; h), where h is what a network says of those kept.

        z′_kept = z_kept,   z′_j = τ(z_j; h_j(z_kept)),   log |det J| = Σ_j log |∂τ/∂z_j|

    It is an autoregressive flow whose conditioners look at the kept coordinates only (book eqs. 13.16, 13.18), so that
    both directions take one pass. `network` gives `synthesizer.size` numbers for each of the rest, along dim 1, those
    of one coordinate side by side. An affine τ makes it Real NVP without the bound that `AffineCoupling` sets.
    """

    kept: Tensor
    rest: Tensor

    def __init__(self, network: nn.Module, kept: Sequence[int], features: int, synthesizer: Synthesizer) -> None:
        super().__init__()
        chosen = set(kept)
        if not chosen or not chosen < set(range(features)):
            raise ValueError(
                f"a coupling keeps some of {features} coordinates and moves at least one; got kept={tuple(kept)}"
            )
        self.network = network
        self.synthesizer = synthesizer
        self.register_buffer("kept", torch.tensor(sorted(chosen)))
        self.register_buffer("rest", torch.tensor(sorted(set(range(features)) - chosen)))

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        moved, log_slope = self.synthesizer(z.index_select(1, self.rest), self._steering(z))
        return z.index_copy(1, self.rest, moved), log_slope.flatten(1).sum(1)

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        moved, log_slope = self.synthesizer.inverse(x.index_select(1, self.rest), self._steering(x))
        return x.index_copy(1, self.rest, moved), log_slope.flatten(1).sum(1)

    def _steering(self, z: Tensor) -> Float[Tensor, "batch rest *space size"]:
        h: Tensor = self.network(z.index_select(1, self.kept))
        size = self.synthesizer.size
        if h.shape[1] != len(self.rest) * size:
            raise ValueError(
                f"the network must give {size} numbers for each of {len(self.rest)} moved; got {h.shape[1]} numbers"
            )
        return h.reshape(len(h), len(self.rest), size, *h.shape[2:]).movedim(2, -1)


def neural_spline_flow(
    features: int,
    synthesizer: Synthesizer | None = None,
    *,
    layers: int = 4,
    hidden: Sequence[int] = (64, 64),
    activation: Activation = relu,
) -> Chain:
    """Spline couplings that keep one half of the coordinates and then the other, in turns (Durkan et al. 2019)."""
    if features < 2 or layers < 1:
        raise ValueError(f"need two features or more and at least one layer; got features={features}, layers={layers}")
    tau = synthesizer or SplineSynthesizer()
    first, second = range(features // 2), range(features // 2, features)
    chain = Chain()
    for layer in range(layers):
        kept, rest = (first, second) if layer % 2 == 0 else (second, first)
        network = mlp((len(kept), *hidden, len(rest) * tau.size), activation=activation)
        chain.append(SynthesizerCoupling(network, kept, features, tau))
    return chain
