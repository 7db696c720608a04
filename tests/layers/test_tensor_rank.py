"""Ranks and decompositions of tensors of known rank."""

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
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def random_factors(terms: int, *sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(size, terms, generator=generator, dtype=torch.float64) for size in sizes]


def test_unfolding_has_its_axis_as_rows() -> None:
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    assert unfolding(tensor, 1).shape == (3, 8)
    torch.testing.assert_close(unfolding(tensor, 1)[2], tensor[:, 2].flatten())
    torch.testing.assert_close(unfolding(tensor, 2), tensor.flatten(0, 1).T)


def test_sum_of_pure_tensors_matches_explicit_sum() -> None:
    u, v, w = random_factors(2, 3, 4, 5)
    expected = sum((pure_tensor(u[:, i], v[:, i], w[:, i]) for i in range(2)), torch.zeros(3, 4, 5).double())
    torch.testing.assert_close(sum_of_pure_tensors([u, v, w]), expected)


def test_unfolding_ranks_have_known_values() -> None:
    assert unfolding_ranks(sum_of_pure_tensors(random_factors(2, 3, 4, 5))) == (2, 2, 2)
    assert unfolding_ranks(torch.eye(3)) == (3, 3)


def test_cp_decomposition_reconstructs_the_tensor(generator: torch.Generator) -> None:
    tensor = 1e3 * sum_of_pure_tensors(random_factors(3, 4, 5, 3))
    decomposition = cp_decomposition(tensor, 3, generator=generator)
    torch.testing.assert_close(decomposition.full(), tensor, rtol=1e-6, atol=1e-3)
    assert decomposition.error == pytest.approx(float((decomposition.full() - tensor).norm() / tensor.norm()), abs=1e-9)
    assert [factor.shape for factor in decomposition.factors] == [(4, 3), (5, 3), (3, 3)]


def test_cp_decomposition_of_a_matrix_is_the_best_low_rank_approximation(generator: torch.Generator) -> None:
    """Eckart–Young theorem: the error is the norm of the remaining singular values."""
    matrix = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    expected = torch.linalg.svdvals(matrix)[2:].square().sum().sqrt() / matrix.norm()
    assert cp_decomposition(matrix, 2, generator=generator).error == pytest.approx(float(expected), rel=1e-6)


def test_errors_are_non_increasing(generator: torch.Generator) -> None:
    decomposition = cp_decomposition(
        torch.randn(3, 3, 3, generator=generator, dtype=torch.float64), 3, generator=generator, num_starts=1
    )
    assert float(decomposition.errors.diff().max()) <= 1e-12


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_rank_of_a_tensor_of_order_four(terms: int, generator: torch.Generator) -> None:
    assert rank_bounds(sum_of_pure_tensors(random_factors(terms, 3, 3, 3, 3)), generator=generator) == (terms, terms)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_matrix_multiplication_tensor_computes_the_product(size: int) -> None:
    a, b = torch.randn(2, size, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    product = torch.einsum("pqr,p,q->r", matrix_multiplication_tensor(size), a.flatten(), b.flatten())
    torch.testing.assert_close(product.reshape(size, size), a @ b)


def test_rank_of_identity_and_zero_tensor(generator: torch.Generator) -> None:
    assert rank_bounds(torch.eye(3).double(), generator=generator) == RankBounds(3, 3)
    assert rank_bounds(torch.zeros(2, 2, 2), generator=generator) == RankBounds(0, 0)
    assert cp_decomposition(torch.zeros(2, 3, 2), 2, generator=generator).error == 0.0


def test_invalid_input_raises_value_error(generator: torch.Generator) -> None:
    with pytest.raises(ValueError, match=r"must have order 2 or more; got shape \(3,\)"):
        rank_bounds(torch.zeros(3), generator=generator)
    with pytest.raises(ValueError, match="at least 1; got terms=0, num_starts=16, max_sweeps=500"):
        cp_decomposition(torch.ones(2, 2), 0, generator=generator)
    with pytest.raises(ValueError, match="size must be at least 1; got size=0"):
        matrix_multiplication_tensor(0)
    with pytest.raises(ValueError, match="must be finite"):
        cp_decomposition(torch.full((2, 2), torch.nan), 1, generator=generator)
