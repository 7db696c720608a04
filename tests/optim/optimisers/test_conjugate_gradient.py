"""Conjugate gradients against a direct solve."""

from functools import partial

import pytest
import torch

from parnassus.optim.optimisers.conjugate_gradient import conjugate_gradient


def test_solution_is_exact_after_as_many_steps_as_dimensions() -> None:
    generator = torch.Generator().manual_seed(0)
    root, target = torch.randn(8, 8, generator=generator).double(), torch.randn(8, generator=generator).double()
    matrix = root @ root.T + torch.eye(8).double()
    actual = conjugate_gradient(lambda x: matrix @ x, target, max_steps=8).x
    torch.testing.assert_close(actual, torch.linalg.solve(matrix, target))


def test_singular_matrix_with_a_target_in_its_range() -> None:
    matrix = torch.diag(torch.tensor([4.0, 1.0, 0.0])).double()
    actual = conjugate_gradient(lambda x: matrix @ x, torch.tensor([8.0, 3.0, 0.0]).double(), max_steps=10).x
    torch.testing.assert_close(actual, torch.tensor([2.0, 3.0, 0.0], dtype=torch.float64))


def test_zero_target_gives_zero_and_zero_max_steps_raises_value_error() -> None:
    assert conjugate_gradient(lambda x: x, torch.zeros(3), max_steps=5).x.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"max_steps must be at least 1.*got max_steps=0"):
        conjugate_gradient(lambda x: x, torch.ones(3), max_steps=0)


def test_batched_systems_match_separate_solves() -> None:
    generator = torch.Generator().manual_seed(0)
    root, target = torch.randn(3, 6, 6, generator=generator).double(), torch.randn(3, 6, generator=generator).double()
    matrix = root @ root.mT + torch.diag(torch.tensor([1.0, 9.0, 1.0, 4.0, 1.0, 1.0])).double()
    matrix[1] = torch.eye(6)  # converges after one step
    target[2] = 0  # converged at the start
    for steps in (1, 3, 6):
        actual = conjugate_gradient(lambda x: (matrix @ x[..., None])[..., 0], target, max_steps=steps, dim=1).x
        for system in range(3):
            expected = conjugate_gradient(partial(torch.mv, matrix[system]), target[system], max_steps=steps).x
            torch.testing.assert_close(actual[system], expected)


def test_preconditioner_reduces_the_number_of_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    scale = torch.logspace(0, 4, 40, dtype=torch.float64)
    root = torch.randn(40, 40, generator=generator).double() / 20
    matrix, target = torch.diag(scale) + root @ root.T, torch.randn(40, 2, generator=generator).double()
    plain = conjugate_gradient(lambda x: matrix @ x, target, max_steps=500, tolerance=1e-9, dim=0)
    jacobi = conjugate_gradient(
        lambda x: matrix @ x,
        target,
        max_steps=500,
        tolerance=1e-9,
        dim=0,
        precondition=lambda r: r / matrix.diagonal()[:, None],
    )
    torch.testing.assert_close(jacobi.x, torch.linalg.solve(matrix, target), rtol=1e-7, atol=1e-9)
    assert jacobi.steps < plain.steps / 3
