"""Parametrisations of invertible matrices with cheap products, solves and determinants (book sec. 13.1).

Each acts on rows: `multiply(z)` is W z for every row z of a batch, `solve(x)` is W⁻¹ x.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.linalg import solve_triangular


@runtime_checkable
class InvertibleMatrix(Protocol):
    """A square matrix W with product, solve and log-determinant."""

    features: int

    def multiply(self, z: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """W z for every row z."""
        ...

    def solve(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """W⁻¹ x for every row x."""
        ...

    def log_abs_det(self) -> Float[Tensor, ""]:
        """The logarithm of |det W|."""
        ...


class DenseMatrix(nn.Module):
    """D² free parameters, initialised to any invertible matrix; determinant and solve cost O(D³).

    >>> DenseMatrix(2 * torch.eye(2)).multiply(torch.ones(1, 2)).tolist()
    [[2.0, 2.0]]
    """

    def __init__(self, initial: Float[Tensor, "features features"]) -> None:
        super().__init__()
        _check_invertible(initial)
        self.features = len(initial)
        self.weight = nn.Parameter(initial.clone())

    def multiply(self, z: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        return z @ self.weight.mT

    def solve(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        z: Tensor = torch.linalg.solve(self.weight.mT, x, left=False)
        return z

    def log_abs_det(self) -> Float[Tensor, ""]:
        log_abs_det: Tensor = torch.linalg.slogdet(self.weight).logabsdet
        return log_abs_det


class TriangularMatrix(nn.Module):
    """Lower triangular with a positive diagonal exp(d): log det W = Σ_i d_i, and a solve costs O(D²).

    Such a matrix can whiten every Gaussian: the inverse of a Cholesky factor is one.

    >>> TriangularMatrix(torch.eye(2)).multiply(torch.ones(1, 2)).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, initial: Float[Tensor, "features features"]) -> None:
        super().__init__()
        if not (initial.diagonal() > 0).all() or initial.triu(1).any():
            raise ValueError("the initial matrix must be lower triangular with a positive diagonal")
        self.features = len(initial)
        self.lower = nn.Parameter(initial.tril(-1))
        self.log_diagonal = nn.Parameter(initial.diagonal().log())

    def matrix(self) -> Float[Tensor, "features features"]:
        return self.lower.tril(-1) + self.log_diagonal.exp().diag()

    def multiply(self, z: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        return z @ self.matrix().mT

    def solve(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        z: Tensor = solve_triangular(self.matrix().mT, x, upper=True, left=False)
        return z

    def log_abs_det(self) -> Float[Tensor, ""]:
        return self.log_diagonal.sum()


class PLUMatrix(nn.Module):
    """W = P L U, L unit lower and U upper triangular: log |det W| = Σ_i log |u_ii| (Kingma and Dhariwal 2018).

    It is initialised to any invertible matrix and keeps P and the signs of the diagonal of U fixed, so it stays
    invertible in training. Product and solve cost O(D²), the determinant O(D).

    >>> PLUMatrix(torch.eye(2)).multiply(torch.ones(1, 2)).tolist()
    [[1.0, 1.0]]
    """

    order: Tensor
    sign: Tensor

    def __init__(self, initial: Float[Tensor, "features features"]) -> None:
        super().__init__()
        _check_invertible(initial)
        self.features = len(initial)
        permutation, lower, upper = torch.linalg.lu(initial)
        self.register_buffer("order", permutation.argmax(1))  # row i of P L U is row order[i] of L U
        self.register_buffer("sign", upper.diagonal().sign())
        self.lower = nn.Parameter(lower.tril(-1))
        self.upper = nn.Parameter(upper.triu(1))
        self.log_diagonal = nn.Parameter(upper.diagonal().abs().log())

    def factors(self) -> tuple[Float[Tensor, "features features"], Float[Tensor, "features features"]]:
        """L and U."""
        lower = self.lower.tril(-1) + torch.eye(self.features, dtype=self.lower.dtype, device=self.lower.device)
        return lower, self.upper.triu(1) + (self.sign * self.log_diagonal.exp()).diag()

    def multiply(self, z: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        lower, upper = self.factors()
        return (z @ upper.mT @ lower.mT)[:, self.order]

    def solve(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        lower, upper = self.factors()
        y = solve_triangular(lower.mT, x[:, self.order.argsort()], upper=True, left=False, unitriangular=True)
        z: Tensor = solve_triangular(upper.mT, y, upper=False, left=False)
        return z

    def log_abs_det(self) -> Float[Tensor, ""]:
        return self.log_diagonal.sum()


class HouseholderMatrix(nn.Module):
    """A product of Householder reflections H_v = I − 2 v vᵀ / ‖v‖², one per row v: orthogonal, log |det W| = 0.

    D reflections represent any orthogonal matrix of determinant (−1)ᴰ; k of them cost O(k D) per row, as does a solve.

    >>> HouseholderMatrix(torch.tensor([[1.0, 0.0]])).multiply(torch.tensor([[2.0, 3.0]])).tolist()
    [[-2.0, 3.0]]
    """

    def __init__(self, vectors: Float[Tensor, "reflections features"]) -> None:
        super().__init__()
        if not vectors.square().sum(1).gt(0).all():
            raise ValueError("the vectors of reflections must not be zero")
        self.features = vectors.shape[1]
        self.vectors = nn.Parameter(vectors.clone())

    def multiply(self, z: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        for v in self.vectors:
            z = _reflect(z, v)
        return z

    def solve(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        for v in self.vectors.flip(0):  # a reflection is its own inverse
            x = _reflect(x, v)
        return x

    def log_abs_det(self) -> Float[Tensor, ""]:
        return self.vectors.new_zeros(())


def random_rotation(features: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "features features"]:
    """A uniformly distributed rotation: det W = 1, an initial value that preserves volume."""
    if features < 1:
        raise ValueError(f"a rotation needs at least one feature; got features={features}")
    q, r = torch.linalg.qr(torch.randn(features, features, generator=generator))
    rotation: Tensor = q * r.diagonal().sign()  # without the signs the distribution would not be uniform
    rotation[:, 0] *= torch.linalg.slogdet(rotation).sign  # a determinant of many factors may underflow
    return rotation


def _reflect(z: Float[Tensor, "rows features"], v: Float[Tensor, " features"]) -> Float[Tensor, "rows features"]:
    return z - torch.outer(z @ v, 2 * v / v.square().sum())


def _check_invertible(matrix: Tensor) -> None:
    rank = int(torch.linalg.matrix_rank(matrix.detach()))
    if rank < len(matrix):
        raise ValueError(
            f"the matrix of a linear flow must be invertible; got a {len(matrix)}×{len(matrix)} matrix of rank {rank}"
        )


def as_invertible_matrix(matrix: nn.Module) -> InvertibleMatrix:
    """The same module; a ValueError if it lacks a method of an `InvertibleMatrix`."""
    if not isinstance(matrix, InvertibleMatrix):
        raise ValueError(f"matrix must have multiply, solve and log_abs_det; got {type(matrix).__name__}")
    return matrix
