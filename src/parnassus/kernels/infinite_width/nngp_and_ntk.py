"""NNGP and NTK of a network description as `Kernel` objects (book secs. 15.3, 15.4)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.network import Network

CHUNK = 32
"""Rows per block when only the diagonal of a kernel is computed."""


class _NetworkKernel(nn.Module):
    """A kernel of a network description; the parameters of its layers are those of the kernel."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.trainable_layers = nn.ModuleList(network.trainable_layers())


class NNGP(_NetworkKernel):
    """Σ^L(x, x′), the covariance of the outputs of a network with random weights, as a kernel (book eq. 15.44).

    `GPRegression` with it is Bayesian inference in an infinitely wide network with a Gaussian prior on all weights.

    >>> network = Network((Dense(), Activation(ReLU()), Dense()))
    >>> NNGP(network)(torch.eye(2), torch.eye(2)).shape
    torch.Size([2, 2])
    """

    def forward(self, x: Float[Tensor, "n *dim"], y: Float[Tensor, "m *size"] | None = None) -> Float[Tensor, "n m"]:
        return self.network.nngp(x, y)

    def diagonal(self, x: Float[Tensor, "n *dim"]) -> Float[Tensor, " n"]:
        """The variances, which every layer propagates."""
        inputs = KernelState.from_inputs(
            x, x[:1], tangent=False, all_positions=self.network.mixes_positions, within_images=True
        )
        return self.network.kernel(inputs).left


class NTK(_NetworkKernel):
    """K*(x, x′), the tangent kernel of a network, as a kernel (book eq. 15.98).

    Regression with it is the limit of training a wide network by gradient descent, up to its initial function.

    >>> network = Network((Dense(), Activation(ReLU()), Dense()))
    >>> NTK(network)(torch.eye(2), torch.eye(2)).shape
    torch.Size([2, 2])
    """

    def forward(self, x: Float[Tensor, "n *dim"], y: Float[Tensor, "m *size"] | None = None) -> Float[Tensor, "n m"]:
        return self.network.kernels(x, y).ntk

    def diagonal(self, x: Float[Tensor, "n *dim"]) -> Float[Tensor, " n"]:
        return torch.cat([self.network.kernels(rows).ntk.diagonal() for rows in x.split(CHUNK)])
