"""Conjugate gradients against a direct solve."""

from functools import partial

import pytest
import torch

from parnassus.optim.conjugate_gradient import conjugate_gradient


def test_as_many_steps_as_dimensions_are_exact() -> None:
    source = torch.Generator().manual_seed(0)
    root, target = torch.randn(8, 8, generator=source).double(), torch.randn(8, generator=source).double()
    matrix = root @ root.T + torch.eye(8).double()
    found = conjugate_gradient(lambda x: matrix @ x, target, max_steps=8).x
    torch.testing.assert_close(found, torch.linalg.solve(matrix, target))


def test_a_singular_matrix_with_a_target_in_its_range() -> None:
    matrix = torch.diag(torch.tensor([4.0, 1.0, 0.0])).double()
    found = conjugate_gradient(lambda x: matrix @ x, torch.tensor([8.0, 3.0, 0.0]).double(), max_steps=10).x
    torch.testing.assert_close(found, torch.tensor([2.0, 3.0, 0.0], dtype=torch.float64))


def test_a_zero_target_needs_no_step_and_zero_steps_are_refused() -> None:
    assert conjugate_gradient(lambda x: x, torch.zeros(3), max_steps=5).x.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"max_steps must be at least 1.*got max_steps=0"):
        conjugate_gradient(lambda x: x, torch.ones(3), max_steps=0)


def test_independent_systems_have_the_solutions_of_separate_ones() -> None:
    source = torch.Generator().manual_seed(0)
    root, target = torch.randn(3, 6, 6, generator=source).double(), torch.randn(3, 6, generator=source).double()
    matrix = root @ root.mT + torch.diag(torch.tensor([1.0, 9.0, 1.0, 4.0, 1.0, 1.0])).double()
    matrix[1] = torch.eye(6)  # done after one step, while the others go on
    target[2] = 0  # nothing to do
    for steps in (1, 3, 6):
        found = conjugate_gradient(lambda x: (matrix @ x[..., None])[..., 0], target, max_steps=steps, dim=1).x
        for system in range(3):
            alone = conjugate_gradient(partial(torch.mv, matrix[system]), target[system], max_steps=steps).x
            torch.testing.assert_close(found[system], alone)


def test_a_preconditioner_changes_the_steps_and_not_the_solution() -> None:
    source = torch.Generator().manual_seed(0)
    scale = torch.logspace(0, 4, 40, dtype=torch.float64)
    root = torch.randn(40, 40, generator=source).double() / 20
    matrix, target = torch.diag(scale) + root @ root.T, torch.randn(40, 2, generator=source).double()
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
