"""One row times a large matrix, on all cores: what writing token by token waits for."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

LARGE = 1 << 17
"""Weights from which the work is worth sharing: to wake a core takes some microseconds."""
SHARES = 4
"""Shares for each core: the core that is done first need not wait long for the others."""


def affine(
    x: Float[Tensor, "*batch width"], weight: Float[Tensor, "out width"], bias: Float[Tensor, " out"] | None = None
) -> Float[Tensor, "*batch out"]:
    """The affine map x Wᵀ + b of torch's `linear`; a single row that needs no gradient is shared out among the cores.

    One row needs every weight once, so it takes as long as the weights take to come out of memory. BLAS leaves that to
    one core. Here the rows of W are shared out, each share a matrix of a batch, and no core reads more than its own.
    """
    if not _to_share(x, weight):
        return linear(x, weight, bias)
    count = SHARES * torch.get_num_threads()
    row, even = x.reshape(1, 1, -1), len(weight) - len(weight) % count
    shares = weight[:even].view(count, even // count, weight.shape[1])
    product = torch.bmm(row.expand(count, -1, -1), shares.mT).flatten()
    if even < len(weight):
        product = torch.cat([product, linear(row.flatten(), weight[even:])])
    product = product.view(*x.shape[:-1], -1)
    return product if bias is None else product + bias.to(product.dtype)


def _to_share(x: Tensor, weight: Tensor) -> bool:
    """Whether x is one row and asks for no gradient, the matrix is large, and there are cores to share it."""
    if weight.numel() < LARGE or not weight.is_cpu or x.numel() != weight.shape[1] or not weight.is_contiguous():
        return False
    return torch.get_num_threads() > 1 and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))


class Affine(nn.Linear):
    """torch's linear layer, quicker where one token is read at a time."""

    def forward(self, input: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch out"]:  # noqa: A002 - torch's name
        return affine(input, self.weight, self.bias)
