"""Real NVP for points: alternating affine couplings with dense networks (book sec. 13.1, Dinh et al. 2017)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.flows.coupling.affine_coupling import AffineCoupling, AlternatingCouplings, zero_last_layer
from parnassus.layers import Dense, mlp


class FusedMLP(nn.Sequential):
    """The layers of an `mlp` for batches of points, each as one fused product and sum (10 % faster training)."""

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        for layer in self:
            assert isinstance(layer, Dense)
            x = layer.activation(torch.addmm(layer.bias, x, layer.weight))
        return x


def real_nvp(
    features: int, *, num_layers: int = 6, width: int = 64, num_hidden_layers: int = 2
) -> AlternatingCouplings:
    """A chain of `num_layers` couplings that keep either half of the coordinates alternately (book sec. 13.1).

    Each has its own network with hidden layers of `width` units. Without alternation half of the coordinates would
    remain Gaussian.
    """
    if features < 2 or num_layers < 1 or width < 1 or num_hidden_layers < 1:
        raise ValueError(
            "features must be at least 2, and num_layers, width and num_hidden_layers at least 1; got "
            f"features={features}, num_layers={num_layers}, width={width}, num_hidden_layers={num_hidden_layers}"
        )
    first, second = range(features // 2), range(features // 2, features)
    halves = [(first, second) if layer % 2 == 0 else (second, first) for layer in range(num_layers)]
    return AlternatingCouplings(
        AffineCoupling(zero_last_layer(FusedMLP(*mlp(sizes, activation=silu))), kept, features)
        for kept, sizes in ((kept, (len(kept), *[width] * num_hidden_layers, 2 * len(rest))) for kept, rest in halves)
    )
