"""The product of one row with a large matrix on all CPU cores, the bottleneck of token-by-token decoding."""

from threading import local

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

MIN_WEIGHTS = 1 << 17
"""Matrices with fewer weights are left to BLAS: waking a thread takes some microseconds."""
MAX_CACHED_WEIGHTS = 1 << 20
"""Up to this many weights the elementwise products stay in the CPU cache until they are summed."""
MAX_BUFFERS = 8
"""Number of product buffers per thread, one per matrix size; a transformer needs four."""
BLOCKS_PER_THREAD = 4
"""Blocks of rows per thread; several, for load balancing."""


def row_linear(
    x: Float[Tensor, "*batch width"], weight: Float[Tensor, "out width"], bias: Float[Tensor, " out"] | None = None
) -> Float[Tensor, "*batch out"]:
    """The affine map x Wᵀ + b of torch's `linear`, parallel over the cores for a single row without gradients.

    A single row uses every weight once, so the product is bound by memory bandwidth, which BLAS on one core does not
    exhaust. Summing the elementwise products W_ij x_j uses all cores and is 2.5 times as fast. If they do not fit into
    the cache, the rows of W are divided into blocks, multiplied as a batch.
    """
    if torch.compiler.is_compiling() and weight.is_cpu and x.numel() == weight.shape[1] and not torch.is_grad_enabled():
        product = (weight * x.reshape(-1)).sum(1)  # one fused pass over the weights
    elif _is_parallel(x, weight):
        product = (_multiply_and_sum if weight.numel() <= MAX_CACHED_WEIGHTS else _multiply_in_blocks)(
            x.reshape(-1), weight
        )
    else:
        return linear(x, weight, bias)
    return (product if bias is None else product + bias).view(*x.shape[:-1], -1)


class _Buffers(local):
    """Reusable buffers per thread: allocating memory for each product would double its cost.

    One per matrix size, so that each core finds its part of the buffer in its own cache.
    """

    def __init__(self) -> None:
        self.tensors: dict[tuple[int, torch.dtype], Tensor] = {}

    def like(self, weight: Tensor) -> Tensor:
        size = weight.numel(), weight.dtype
        buffer = self.tensors.get(size)
        if buffer is None:
            if len(self.tensors) == MAX_BUFFERS:
                self.tensors.clear()
            with torch.inference_mode(False):  # writable in any mode
                buffer = self.tensors[size] = torch.empty(size[0], dtype=size[1])
        return buffer.view_as(weight)


_buffers = _Buffers()


def _multiply_and_sum(row: Float[Tensor, " width"], weight: Float[Tensor, "out width"]) -> Float[Tensor, " out"]:
    """Σ_j W_ij x_j, by an elementwise product and a sum."""
    return torch.mul(weight, row, out=_buffers.like(weight)).sum(1)


def _multiply_in_blocks(row: Float[Tensor, " width"], weight: Float[Tensor, "out width"]) -> Float[Tensor, " out"]:
    """Σ_j W_ij x_j, as a batch of products with blocks of rows of W."""
    count = BLOCKS_PER_THREAD * torch.get_num_threads()
    even = len(weight) - len(weight) % count
    blocks = weight[:even].view(count, even // count, weight.shape[1])
    product = torch.bmm(row.expand(count, 1, -1), blocks.mT).flatten()
    return product if even == len(weight) else torch.cat([product, linear(row, weight[even:])])


def _is_parallel(x: Tensor, weight: Tensor) -> bool:
    """Whether x is a single row without gradients, the matrix is large and several threads are available.

    Half precision is left to BLAS, which accumulates in single precision; `row_linear` would round every product.
    Tensors under torch.compile or torch.func are left to torch.
    """
    if weight.numel() < MIN_WEIGHTS or not weight.is_cpu or x.numel() != weight.shape[1] or not weight.is_contiguous():
        return False
    if weight.dtype.itemsize < 4 or torch.is_autocast_enabled("cpu") or torch.get_num_threads() == 1:
        return False
    if torch.compiler.is_compiling() or not (_has_memory(x) and _has_memory(weight)):
        return False
    return not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))


def _has_memory(x: Tensor) -> bool:
    """Whether a tensor has memory of its own; the tensors inside a transformation of torch.func have none."""
    try:
        return x.data_ptr() != 0
    except RuntimeError:
        return False


class RowLinear(nn.Linear):
    """torch's linear layer, faster for one token at a time.

    >>> RowLinear(8, 4)(torch.zeros(1, 8)).shape
    torch.Size([1, 4])
    """

    def forward(self, input: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch out"]:  # noqa: A002 - torch's name
        return row_linear(input, self.weight, self.bias)
