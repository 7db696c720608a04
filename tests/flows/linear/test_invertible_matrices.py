"""Parametrised matrices: products, solves and determinants against torch.linalg."""

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
from parnassus.probability import standard_normal


def random_matrix(features: int, seed: int = 0) -> Tensor:
    return standard_normal(features, features, seed=seed)


def make_matrices() -> list[nn.Module]:
    lower = random_matrix(5).tril(-1) + random_matrix(5, 1).diagonal().exp().diag()
    return [
        DenseMatrix(random_matrix(5)),
        TriangularMatrix(lower),
        PLUMatrix(random_matrix(5)),
        HouseholderMatrix(random_matrix(5)[:3]),
    ]


def dense_matrix(matrix: nn.Module) -> Tensor:
    """W computed from its products with the unit vectors."""
    assert isinstance(matrix, InvertibleMatrix)
    return matrix.multiply(torch.eye(5, dtype=torch.float64)).mT.detach()


@pytest.mark.parametrize("index", range(4))
def test_products_solves_and_determinants(index: int) -> None:
    matrix = make_matrices()[index]
    assert isinstance(matrix, InvertibleMatrix)
    w, z = dense_matrix(matrix), random_matrix(5, 2)[:3]
    torch.testing.assert_close(matrix.multiply(z), z @ w.mT)
    torch.testing.assert_close(matrix.solve(matrix.multiply(z)), z, atol=1e-10, rtol=0)
    torch.testing.assert_close(matrix.solve(z), torch.linalg.solve(w, z.mT).mT)
    torch.testing.assert_close(matrix.log_abs_det(), torch.linalg.slogdet(w).logabsdet, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("form", [DenseMatrix, PLUMatrix])
def test_matrix_is_initialised_to_the_given_values(form: type[nn.Module]) -> None:
    torch.testing.assert_close(dense_matrix(form(random_matrix(5))), random_matrix(5))


def test_triangular_matrix_stays_triangular() -> None:
    lower = random_matrix(5).tril(-1) + torch.eye(5, dtype=torch.float64)
    matrix = TriangularMatrix(lower)
    torch.testing.assert_close(dense_matrix(matrix), lower)
    nn.init.normal_(matrix.lower)
    nn.init.normal_(matrix.log_diagonal)
    assert not dense_matrix(matrix).triu(1).any()


def test_sign_of_the_plu_determinant_is_constant() -> None:
    matrix = PLUMatrix(random_matrix(5))
    sign = torch.linalg.slogdet(random_matrix(5)).sign
    torch.manual_seed(0)
    for parameter in matrix.parameters():
        nn.init.normal_(parameter, std=3.0)
    slogdet = torch.linalg.slogdet(dense_matrix(matrix))
    torch.testing.assert_close(slogdet.sign, sign)
    torch.testing.assert_close(slogdet.logabsdet, matrix.log_abs_det().detach())


@pytest.mark.parametrize("reflections", [1, 2, 5])
def test_product_of_reflections_is_orthogonal(reflections: int) -> None:
    w = dense_matrix(HouseholderMatrix(random_matrix(5)[:reflections]))
    torch.testing.assert_close(w @ w.mT, torch.eye(5, dtype=torch.float64))
    torch.testing.assert_close(torch.linalg.det(w), torch.tensor((-1.0) ** reflections, dtype=torch.float64))


def test_reflection_negates_its_vector_and_keeps_orthogonal_vectors() -> None:
    v = torch.tensor([3.0, 4.0])
    matrix = HouseholderMatrix(v[None])
    torch.testing.assert_close(matrix.multiply(v[None]), -v[None])
    torch.testing.assert_close(matrix.multiply(torch.tensor([[4.0, -3.0]])), torch.tensor([[4.0, -3.0]]))


def test_random_rotations_are_uniform() -> None:
    """Determinants are 1; columns have mean 0 and second moment I / D."""
    generator = torch.Generator().manual_seed(0)
    rotations = torch.stack([random_rotation(3, generator=generator) for _ in range(2_000)])
    torch.testing.assert_close(torch.linalg.det(rotations), torch.ones(2_000))
    for column in rotations.unbind(2):
        torch.testing.assert_close(column.mean(0), torch.zeros(3), atol=0.05, rtol=0)
        torch.testing.assert_close(column.mT @ column / 2_000, torch.eye(3) / 3, atol=0.03, rtol=0)


def test_determinant_of_a_large_random_rotation_is_one() -> None:
    """The product of 512 pivots underflows in float32."""
    w = random_rotation(512, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(w @ w.mT, torch.eye(512), atol=1e-5, rtol=0)
    assert float(torch.linalg.slogdet(w).sign) == 1


def test_singular_matrix_raises_value_error() -> None:
    singular = torch.ones(3, 3)
    with pytest.raises(ValueError, match="got a 3×3 matrix of rank 1"):
        DenseMatrix(singular)
    with pytest.raises(ValueError, match="got a 3×3 matrix of rank 1"):
        PLUMatrix(singular)
    with pytest.raises(ValueError, match="lower triangular with a positive diagonal"):
        TriangularMatrix(singular)
    with pytest.raises(ValueError, match="lower triangular with a positive diagonal"):
        TriangularMatrix(-torch.eye(3))
    with pytest.raises(ValueError, match="must not be zero"):
        HouseholderMatrix(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="at least one feature; got features=0"):
        random_rotation(0)
