"""Sequential and total operation counts of layers (book sec. 10.1.1)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.graph import Node
from torch.utils.flop_counter import FlopCounterMode

from parnassus.attention.core.dot_product import attention
from parnassus.attention.core.self_attention import SelfAttention, join_heads


def longest_operation_chain(output: Tensor) -> int:
    """The length of the longest path in the autograd graph of `output`: its number of sequential operations."""
    depth: dict[Node | None, int] = {None: 0}
    pending = [output.grad_fn]
    while pending:  # a node is finished after all its inputs
        node = pending[-1]
        inputs = [] if node is None else [parent for parent, _ in node.next_functions]
        unfinished = [parent for parent in inputs if parent not in depth]
        pending.extend(unfinished)
        if not unfinished:
            depth[pending.pop()] = 1 + max((depth[parent] for parent in inputs), default=0)
    return depth[output.grad_fn]


def count_multiplications(compute: Callable[[], object]) -> float:
    """The number of multiplications in matrix products and convolutions of `compute()`."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        compute()
    return int(counter.get_total_flops()) / 2  # it counts a multiplication and an addition


def count_saved_numbers(compute: Callable[[], object]) -> float:
    """The number of tensor elements that autograd saves for the backward pass of `compute()`."""
    sizes: dict[int, int] = {}

    def count(x: Tensor) -> Tensor:
        sizes[x.data_ptr()] = x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        compute()
    return float(sum(sizes.values()))


def unfused_self_attention(layer: SelfAttention, x: Tensor) -> Tensor:
    """The output of `layer` without fused kernels, so that autograd and the counter record every operation."""
    query, key, value = layer.project(x)
    output: Tensor = layer.out_proj(join_heads(attention(query, key, value).output))
    return output
