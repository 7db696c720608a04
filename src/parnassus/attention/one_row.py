"""One row times a large matrix, on all cores: what writing token by token waits for."""

from threading import local

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.nn.functional import linear

LARGE = 1 << 17
"""Weights from which the work is worth sharing: to wake a core takes some microseconds."""
CACHED = 1 << 20
"""Weights whose products with the row stay in the cache until they are summed."""
ROOMS = 8
"""Sizes of matrices for whose products a thread keeps room; a transformer has four."""
SHARES = 4
"""Shares for each core: the core that is done first need not wait long for the others."""


def affine(
    x: Float[Tensor, "*batch width"], weight: Float[Tensor, "out width"], bias: Float[Tensor, " out"] | None = None
) -> Float[Tensor, "*batch out"]:
    """The affine map x Wᵀ + b of torch's `linear`; a single row that needs no gradient is shared out among the cores.

    One row needs every weight once, so it takes as long as the weights take to come out of memory. BLAS leaves that to
    one core, and has no eye for memory. Summing the products W_ij x_j as they are defined keeps all cores reading: 2.5
    times as fast. Products too many for the cache would have to go to memory and back; there the rows of W are shared
    out, each share a matrix of a batch.
    """
    if torch.compiler.is_compiling() and weight.is_cpu and x.numel() == weight.shape[1] and not torch.is_grad_enabled():
        product = (weight * x.reshape(-1)).sum(1)  # terms and sums in one pass over the weights
    elif _to_share(x, weight):
        product = (_by_terms if weight.numel() <= CACHED else _by_shares)(x.reshape(-1), weight)
    else:
        return linear(x, weight, bias)
    return (product if bias is None else product + bias).view(*x.shape[:-1], -1)


class _Rooms(local):
    """Every thread's own rooms for products: new memory at every product would cost as much again.

    One for each size, so that a core finds its own half where it left it.
    """

    def __init__(self) -> None:
        self.rooms: dict[tuple[int, torch.dtype], Tensor] = {}

    def like(self, weight: Tensor) -> Tensor:
        size = weight.numel(), weight.dtype
        room = self.rooms.get(size)
        if room is None:
            if len(self.rooms) == ROOMS:
                self.rooms.clear()
            with torch.inference_mode(False):  # to be written to in any mode
                room = self.rooms[size] = torch.empty(size[0], dtype=size[1])
        return room.view_as(weight)


_rooms = _Rooms()


def _by_terms(row: Float[Tensor, " width"], weight: Float[Tensor, "out width"]) -> Float[Tensor, " out"]:
    """The product Σ_j W_ij x_j, all terms first."""
    return torch.mul(weight, row, out=_rooms.like(weight)).sum(1)


def _by_shares(row: Float[Tensor, " width"], weight: Float[Tensor, "out width"]) -> Float[Tensor, " out"]:
    """The product row by row of W, several rows a share."""
    count = SHARES * torch.get_num_threads()
    even = len(weight) - len(weight) % count
    shares = weight[:even].view(count, even // count, weight.shape[1])
    product = torch.bmm(row.expand(count, 1, -1), shares.mT).flatten()
    return product if even == len(weight) else torch.cat([product, linear(row, weight[even:])])


def _to_share(x: Tensor, weight: Tensor) -> bool:
    """Whether x is one row and asks for no gradient, the matrix is large, and there are cores to share it.

    Half precision is left to BLAS, which sums in single precision: here every product would be rounded. Compilers and
    torch.func have ways of their own.
    """
    if weight.numel() < LARGE or not weight.is_cpu or x.numel() != weight.shape[1] or not weight.is_contiguous():
        return False
    if weight.dtype.itemsize < 4 or torch.is_autocast_enabled("cpu") or torch.get_num_threads() == 1:
        return False
    if torch.compiler.is_compiling() or is_functorch_wrapped_tensor(x) or is_functorch_wrapped_tensor(weight):
        return False
    return not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))


class Affine(nn.Linear):
    """torch's linear layer, quicker where one token is read at a time."""

    def forward(self, input: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch out"]:  # noqa: A002 - torch's name
        return affine(input, self.weight, self.bias)
