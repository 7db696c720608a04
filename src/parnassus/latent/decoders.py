"""Decoders of a variational autoencoder: what a network says, read as a distribution p(x|z) (book sec. 6.3)."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Bernoulli, Distribution, Independent, Normal
from torch.nn.functional import softplus


def independent_normal(
    mean: Float[Tensor, "batch *event"], std: Float[Tensor, "*#event"] | Float[Tensor, "batch *event"]
) -> Distribution:
    """N(mean, diag std²) with one density for each row."""
    return Independent(Normal(mean, std.expand_as(mean), validate_args=False), mean.dim() - 1, validate_args=False)


class BernoulliDecoder(nn.Module):
    """Pixels are coins: p(x|z) = Π_i p_iˣⁱ (1 − p_i)^(1 − x_i) with logits `network(z)` (book sec. 6.3).

    −log p(x|z) is the binary cross-entropy, a likelihood of x in {0, 1} only. On grey values the same number is a loss
    but no density: its least value is the entropy of the grey, not 0.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        logits: Tensor = self.network(z)
        return Independent(Bernoulli(logits=logits, validate_args=False), logits.dim() - 1, validate_args=False)


class GaussianDecoder(nn.Module):
    """p(x|z) = N(network(z), s² I), with one deviation s for all coordinates, learned unless told (book eq. 6.16).

        −log p(x|z) = ‖x − x̂‖² / (2s²) + (N/2) log 2πs²

    The plain squared error of the text is s² = ½. A smaller s weighs reconstruction more against the rate: minimising
    ‖x − x̂‖² + β·rate is this decoder with 2s² = β.
    """

    def __init__(self, network: nn.Module, *, std: float = 1.0, learned: bool = True) -> None:
        super().__init__()
        if not std > 0:
            raise ValueError(f"the standard deviation must be positive; got std={std}")
        self.network = network
        self.log_std = nn.Parameter(torch.tensor(log(std)), requires_grad=learned)

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        return independent_normal(self.network(z), self.log_std.exp())


class GaussianHeadsDecoder(nn.Module):
    """p(x|z) = N(μ(z), diag s²(z)): mean and deviation of every coordinate from z (book sec. 6.3, Diehl sec. 6).

    `network(z)` gives 2N numbers, means first. `least` keeps the deviation away from 0, where the likelihood of one
    well met coordinate could grow without bound.
    """

    def __init__(self, network: nn.Module, *, least: float = 1e-3) -> None:
        super().__init__()
        if not least > 0:
            raise ValueError(f"the least deviation must be positive; got least={least}")
        self.network = network
        self.least = least

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        numbers: Tensor = self.network(z)
        if numbers.shape[1] % 2:
            raise ValueError(f"means and deviations must be equally many; got {numbers.shape[1]} numbers for both")
        mean, raw = numbers.chunk(2, dim=1)
        return independent_normal(mean, softplus(raw) + self.least)
