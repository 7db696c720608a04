"""Counts of sequential operations and multiplications."""

from functools import partial

import pytest
import torch

from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.efficient.operation_counts import (
    count_multiplications,
    longest_operation_chain,
    unfused_self_attention,
)


@pytest.mark.parametrize("steps", [1, 5, 40])
def test_longest_operation_chain_counts_sequential_operations(steps: int) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(steps):
        y = y.sin()
    assert longest_operation_chain(y) == steps + 1  # including the leaf
    assert longest_operation_chain(x.cos() + y) == steps + 2


def test_matrix_product_has_n_m_k_multiplications() -> None:
    assert count_multiplications(partial(torch.matmul, torch.randn(3, 5), torch.randn(5, 7))) == 3 * 5 * 7


def test_unfused_self_attention_matches_the_layer() -> None:
    torch.manual_seed(0)
    layer, x = SelfAttention(12, 3), torch.randn(2, 5, 12)
    torch.testing.assert_close(unfused_self_attention(layer, x), layer(x))
