"""Infinitely wide networks as kernels, for whatever takes a kernel (book secs. 15.3, 15.4)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.network import Network
from parnassus.kernels.pair import Pair

CHUNK = 32
"""Rows whose own kernel is worked out for its diagonal alone."""


class NNGP(nn.Module):
    """Σ^L(x, x′), the covariance of the outputs of a network with random weights, as a kernel (book eq. 15.44).

    With it `GPRegression` is Bayesian inference with an infinitely wide network, all of whose weights have a prior.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.learned = nn.ModuleList(network.learned())

    def forward(self, x: Float[Tensor, "n *dim"], y: Float[Tensor, "m *size"] | None = None) -> Float[Tensor, "n m"]:
        return self.network.nngp(x, y)

    def diagonal(self, x: Float[Tensor, "n *dim"]) -> Float[Tensor, " n"]:
        """The variances, which every layer carries along."""
        inputs = Pair.of_inputs(x, x[:1], tangent=False, every_place=self.network.mixes_places, within=True)
        return self.network.kernel(inputs).left


class NTK(nn.Module):
    """K*(x, x′), the tangent kernel of a network, as a kernel (book eq. 15.98).

    Regression with it is what a wide network trained by gradient descent arrives at, up to the function it began with.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.learned = nn.ModuleList(network.learned())

    def forward(self, x: Float[Tensor, "n *dim"], y: Float[Tensor, "m *size"] | None = None) -> Float[Tensor, "n m"]:
        return self.network.kernels(x, y).ntk

    def diagonal(self, x: Float[Tensor, "n *dim"]) -> Float[Tensor, " n"]:
        return torch.cat([self.network.kernels(rows).ntk.diagonal() for rows in x.split(CHUNK)])
