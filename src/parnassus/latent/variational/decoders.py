"""Decoders of a VAE: Bernoulli and Gaussian likelihoods p(x|z) (book sec. 6.3)."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Bernoulli, Distribution, Independent
from torch.nn.functional import softplus

from parnassus.errors import check_positive
from parnassus.latent.variational.reparametrisation import independent_normal
from parnassus.layers import check_logit_network
from parnassus.losses import check_logits


class BernoulliDecoder(nn.Module):
    """p(x|z) = Π_i p_iˣⁱ (1 − p_i)^(1 − x_i) with logits `network(z)` (book sec. 6.3).

    −log p(x|z) is the binary cross-entropy, a likelihood for x in {0, 1} only. For grey values it is a loss, but not
    a negative log-density: its minimum is the entropy of the grey values, not 0.

    >>> decoder = BernoulliDecoder(nn.Linear(2, 5))  # the network returns logits, without a sigmoid
    >>> decoder(torch.zeros(3, 2)).sample().shape
    torch.Size([3, 5])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        check_logit_network(network)
        self.network = network

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        logits: Tensor = self.network(z)
        check_logits(logits)
        return Independent(Bernoulli(logits=logits, validate_args=False), logits.dim() - 1, validate_args=False)


class GaussianDecoder(nn.Module):
    """p(x|z) = N(network(z), s² I), with one standard deviation s for all coordinates (book eq. 6.16).

        −log p(x|z) = ‖x − x̂‖² / (2s²) + (N/2) log 2πs²

    s is learned by default. The plain squared error of the text is s² = ½. A smaller s gives the distortion more
    weight relative to the rate: minimising ‖x − x̂‖² + β·rate is this decoder with 2s² = β.

    >>> decoder = GaussianDecoder(nn.Linear(2, 5), std=0.5, learned=False)
    >>> decoder(torch.zeros(3, 2)).variance[0, 0].item()
    0.25
    """

    def __init__(self, network: nn.Module, *, std: float = 1.0, learned: bool = True) -> None:
        super().__init__()
        check_positive(std=std)
        self.network = network
        self.log_std = nn.Parameter(torch.tensor(log(std)), requires_grad=learned)

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        return independent_normal(self.network(z), self.log_std.exp())


class HeteroscedasticGaussianDecoder(nn.Module):
    """p(x|z) = N(μ(z), diag s²(z)): mean and standard deviation depend on z (book sec. 6.3, Diehl sec. 6).

    `network(z)` returns 2N values, means first. `min_std` bounds the standard deviation away from 0, where the
    likelihood of an exactly predicted coordinate is unbounded.

    >>> decoder = HeteroscedasticGaussianDecoder(nn.Linear(2, 2 * 5))
    >>> decoder(torch.zeros(3, 2)).mean.shape
    torch.Size([3, 5])
    """

    def __init__(self, network: nn.Module, *, min_std: float = 1e-3) -> None:
        super().__init__()
        check_positive(min_std=min_std)
        self.network = network
        self.min_std = min_std

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        values: Tensor = self.network(z)
        if values.shape[1] % 2:
            raise ValueError(
                f"the network must return as many means as standard deviations; got {values.shape[1]} values"
            )
        mean, raw = values.chunk(2, dim=1)
        return independent_normal(mean, softplus(raw) + self.min_std)
