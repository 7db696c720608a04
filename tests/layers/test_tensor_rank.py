"""Decompositions of tensors whose rank is known."""

import pytest
import torch
from torch import Tensor

from parnassus.layers import (
    RankBounds,
    cp_decomposition,
    matrix_multiplication_tensor,
    pure_tensor,
    rank_bounds,
    sum_of_pure_tensors,
    unfolding,
    unfolding_ranks,
)


@pytest.fixture
def source() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def factors(terms: int, *sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(size, terms, generator=generator, dtype=torch.float64) for size in sizes]


def test_an_unfolding_keeps_rows_along_its_axis() -> None:
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    assert unfolding(tensor, 1).shape == (3, 8)
    torch.testing.assert_close(unfolding(tensor, 1)[2], tensor[:, 2].flatten())
    torch.testing.assert_close(unfolding(tensor, 2), tensor.flatten(0, 1).T)


def test_the_sum_is_one_of_pure_tensors() -> None:
    u, v, w = factors(2, 3, 4, 5)
    by_hand = sum((pure_tensor(u[:, i], v[:, i], w[:, i]) for i in range(2)), torch.zeros(3, 4, 5).double())
    torch.testing.assert_close(sum_of_pure_tensors([u, v, w]), by_hand)


def test_unfoldings_bound_from_below() -> None:
    assert unfolding_ranks(sum_of_pure_tensors(factors(2, 3, 4, 5))) == (2, 2, 2)
    assert unfolding_ranks(torch.eye(3)) == (3, 3)


def test_a_decomposition_adds_up_to_its_tensor(source: torch.Generator) -> None:
    tensor = 1e3 * sum_of_pure_tensors(factors(3, 4, 5, 3))
    found = cp_decomposition(tensor, 3, generator=source)
    torch.testing.assert_close(found.full(), tensor, rtol=1e-6, atol=1e-3)
    assert found.error == pytest.approx(float((found.full() - tensor).norm() / tensor.norm()), abs=1e-9)
    assert [factor.shape for factor in found.factors] == [(4, 3), (5, 3), (3, 3)]


def test_of_a_matrix_it_is_the_best_of_its_rank(source: torch.Generator) -> None:
    """Eckart and Young: what is left are the smaller singular values."""
    matrix = torch.randn(6, 5, generator=source, dtype=torch.float64)
    left = torch.linalg.svdvals(matrix)[2:].square().sum().sqrt() / matrix.norm()
    assert cp_decomposition(matrix, 2, generator=source).error == pytest.approx(float(left), rel=1e-6)


def test_errors_never_grow(source: torch.Generator) -> None:
    found = cp_decomposition(
        torch.randn(3, 3, 3, generator=source, dtype=torch.float64), 3, generator=source, num_starts=1
    )
    assert float(found.errors.diff().max()) <= 1e-12


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_order_four(terms: int, source: torch.Generator) -> None:
    assert rank_bounds(sum_of_pure_tensors(factors(terms, 3, 3, 3, 3)), generator=source) == (terms, terms)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_matrix_product_as_a_tensor(size: int) -> None:
    a, b = torch.randn(2, size, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    product = torch.einsum("pqr,p,q->r", matrix_multiplication_tensor(size), a.flatten(), b.flatten())
    torch.testing.assert_close(product.reshape(size, size), a @ b)


def test_matrices_and_zero(source: torch.Generator) -> None:
    assert rank_bounds(torch.eye(3).double(), generator=source) == RankBounds(3, 3)
    assert rank_bounds(torch.zeros(2, 2, 2), generator=source) == RankBounds(0, 0)
    assert cp_decomposition(torch.zeros(2, 3, 2), 2, generator=source).error == 0.0


def test_wrong_input_raises(source: torch.Generator) -> None:
    with pytest.raises(ValueError, match=r"must have order 2 or more; got shape \(3,\)"):
        rank_bounds(torch.zeros(3), generator=source)
    with pytest.raises(ValueError, match="at least 1; got terms=0, num_starts=16, max_sweeps=500"):
        cp_decomposition(torch.ones(2, 2), 0, generator=source)
    with pytest.raises(ValueError, match="size must be at least 1; got size=0"):
        matrix_multiplication_tensor(0)
    with pytest.raises(ValueError, match="must be finite"):
        cp_decomposition(torch.full((2, 2), torch.nan), 1, generator=source)
