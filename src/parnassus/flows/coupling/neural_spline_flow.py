"""Neural spline flows: couplings with spline, or other, synthesizers (Durkan et al. 2019)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.autoregressive.synthesizers import SplineSynthesizer, Synthesizer
from parnassus.flows.flow import Chain
from parnassus.layers import Activation, mlp, relu


class SynthesizerCoupling(nn.Module):
    """Keep some coordinates and transform each of the others by τ(·; h), with h a function of those kept.

        z′_kept = z_kept,   z′_j = τ(z_j; h_j(z_kept)),   log |det J| = Σ_j log |∂τ/∂z_j|

    An autoregressive flow whose conditioners depend on the kept coordinates only (book eqs. 13.16, 13.18), so that both
    directions take one pass. `network` returns `synthesizer.size` adjacent values along dim 1 for each transformed
    coordinate. With an affine τ it is Real NVP without the bound of `AffineCoupling`.

    >>> synthesizer = AffineSynthesizer()
    >>> coupling = SynthesizerCoupling(nn.Linear(1, synthesizer.size), [0], 2, synthesizer)
    >>> coupling(torch.zeros(5, 2))[0].shape
    torch.Size([5, 2])
    """

    kept: Tensor
    rest: Tensor

    def __init__(self, network: nn.Module, kept: Sequence[int], features: int, synthesizer: Synthesizer) -> None:
        super().__init__()
        chosen = set(kept)
        if not chosen or not chosen < set(range(features)):
            raise ValueError(f"kept must name some, not all, of {features} coordinates; got kept={tuple(kept)}")
        self.network = network
        self.synthesizer = synthesizer
        self.register_buffer("kept", torch.tensor(sorted(chosen)))
        self.register_buffer("rest", torch.tensor(sorted(set(range(features)) - chosen)))

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        transformed, log_derivative = self.synthesizer(z.index_select(1, self.rest), self._condition(z))
        return z.index_copy(1, self.rest, transformed), log_derivative.flatten(1).sum(1)

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        transformed, log_derivative = self.synthesizer.inverse(x.index_select(1, self.rest), self._condition(x))
        return x.index_copy(1, self.rest, transformed), log_derivative.flatten(1).sum(1)

    def _condition(self, z: Tensor) -> Float[Tensor, "batch rest *space size"]:
        h: Tensor = self.network(z.index_select(1, self.kept))
        size = self.synthesizer.size
        if h.shape[1] != len(self.rest) * size:
            raise ValueError(
                f"the network must return {size} values for each of {len(self.rest)} coordinates; "
                f"got {h.shape[1]} values"
            )
        return h.reshape(len(h), len(self.rest), size, *h.shape[2:]).movedim(2, -1)


def neural_spline_flow(
    features: int,
    synthesizer: Synthesizer | None = None,
    *,
    num_layers: int = 4,
    hidden_sizes: Sequence[int] = (64, 64),
    activation: Activation = relu,
) -> Chain:
    """Spline couplings that keep either half of the coordinates alternately (Durkan et al. 2019)."""
    if features < 2 or num_layers < 1:
        raise ValueError(
            f"features must be at least 2 and num_layers at least 1; got features={features}, num_layers={num_layers}"
        )
    tau = synthesizer or SplineSynthesizer()
    first, second = range(features // 2), range(features // 2, features)
    chain = Chain()
    for layer in range(num_layers):
        kept, rest = (first, second) if layer % 2 == 0 else (second, first)
        network = mlp((len(kept), *hidden_sizes, len(rest) * tau.size), activation=activation)
        chain.append(SynthesizerCoupling(network, kept, features, tau))
    return chain
