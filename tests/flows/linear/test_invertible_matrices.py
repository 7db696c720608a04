"""Matrices in five forms: products, solutions and determinants against torch.linalg."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.flows import (
    DenseMatrix,
    HouseholderMatrix,
    InvertibleMatrix,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)


def start(features: int, seed: int = 0) -> Tensor:
    return torch.randn(features, features, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def forms() -> list[nn.Module]:
    lower = start(5).tril(-1) + start(5, 1).diagonal().exp().diag()
    return [DenseMatrix(start(5)), TriangularMatrix(lower), PLUMatrix(start(5)), HouseholderMatrix(start(5)[:3])]


def dense_matrix(matrix: nn.Module) -> Tensor:
    """W, by what it makes of the unit vectors."""
    assert isinstance(matrix, InvertibleMatrix)
    return matrix.multiply(torch.eye(5, dtype=torch.float64)).mT.detach()


@pytest.mark.parametrize("index", range(4))
def test_it_applies_and_undoes_one_matrix_of_known_determinant(index: int) -> None:
    matrix = forms()[index]
    assert isinstance(matrix, InvertibleMatrix)
    w, z = dense_matrix(matrix), start(5, 2)[:3]
    torch.testing.assert_close(matrix.multiply(z), z @ w.mT)
    torch.testing.assert_close(matrix.solve(matrix.multiply(z)), z, atol=1e-10, rtol=0)
    torch.testing.assert_close(matrix.solve(z), torch.linalg.solve(w, z.mT).mT)
    torch.testing.assert_close(matrix.log_abs_det(), torch.linalg.slogdet(w).logabsdet, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("form", [DenseMatrix, PLUMatrix])
def test_it_begins_as_what_it_was_given(form: type[nn.Module]) -> None:
    torch.testing.assert_close(dense_matrix(form(start(5))), start(5))


def test_a_triangle_begins_as_what_it_was_given_and_stays_one() -> None:
    lower = start(5).tril(-1) + torch.eye(5, dtype=torch.float64)
    matrix = TriangularMatrix(lower)
    torch.testing.assert_close(dense_matrix(matrix), lower)
    nn.init.normal_(matrix.lower)
    nn.init.normal_(matrix.log_diagonal)
    assert not dense_matrix(matrix).triu(1).any()


def test_the_factors_of_plu_stay_factors_whatever_is_learned() -> None:
    """A step may write anything into the parameters; the determinant keeps its sign."""
    matrix = PLUMatrix(start(5))
    sign = torch.linalg.slogdet(start(5)).sign
    torch.manual_seed(0)
    for parameter in matrix.parameters():
        nn.init.normal_(parameter, std=3.0)
    found = torch.linalg.slogdet(dense_matrix(matrix))
    torch.testing.assert_close(found.sign, sign)
    torch.testing.assert_close(found.logabsdet, matrix.log_abs_det().detach())


@pytest.mark.parametrize("reflections", [1, 2, 5])
def test_reflections_make_an_orthogonal_matrix(reflections: int) -> None:
    w = dense_matrix(HouseholderMatrix(start(5)[:reflections]))
    torch.testing.assert_close(w @ w.mT, torch.eye(5, dtype=torch.float64))
    torch.testing.assert_close(torch.linalg.det(w), torch.tensor((-1.0) ** reflections, dtype=torch.float64))


def test_a_reflection_keeps_its_mirror_and_turns_its_vector() -> None:
    v = torch.tensor([3.0, 4.0])
    matrix = HouseholderMatrix(v[None])
    torch.testing.assert_close(matrix.multiply(v[None]), -v[None])
    torch.testing.assert_close(matrix.multiply(torch.tensor([[4.0, -3.0]])), torch.tensor([[4.0, -3.0]]))


def test_random_rotations_are_even() -> None:
    """W has determinant 1, and the first column points everywhere alike: its mean is 0, its second moment I / D."""
    source = torch.Generator().manual_seed(0)
    rotations = torch.stack([random_rotation(3, generator=source) for _ in range(2_000)])
    torch.testing.assert_close(torch.linalg.det(rotations), torch.ones(2_000))
    for column in rotations.unbind(2):
        torch.testing.assert_close(column.mean(0), torch.zeros(3), atol=0.05, rtol=0)
        torch.testing.assert_close(column.mT @ column / 2_000, torch.eye(3) / 3, atol=0.03, rtol=0)


def test_a_large_rotation_is_one_too() -> None:
    """The product of 512 pivots underflows in single precision, and with it its sign."""
    w = random_rotation(512, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(w @ w.mT, torch.eye(512), atol=1e-5, rtol=0)
    assert float(torch.linalg.slogdet(w).sign) == 1


def test_a_singular_matrix_raises_an_error() -> None:
    flat = torch.ones(3, 3)
    with pytest.raises(ValueError, match="got a 3×3 matrix of rank 1"):
        DenseMatrix(flat)
    with pytest.raises(ValueError, match="got a 3×3 matrix of rank 1"):
        PLUMatrix(flat)
    with pytest.raises(ValueError, match="lower triangular with a positive diagonal"):
        TriangularMatrix(flat)
    with pytest.raises(ValueError, match="lower triangular with a positive diagonal"):
        TriangularMatrix(-torch.eye(3))
    with pytest.raises(ValueError, match="must not be zero"):
        HouseholderMatrix(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="at least one feature; got features=0"):
        random_rotation(0)
