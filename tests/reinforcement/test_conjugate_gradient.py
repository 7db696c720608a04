"""Conjugate gradients against a direct solve."""

from functools import partial

import pytest
import torch

from parnassus.reinforcement.conjugate_gradient import conjugate_gradient


def test_as_many_steps_as_dimensions_solve_it() -> None:
    source = torch.Generator().manual_seed(0)
    root, target = torch.randn(8, 8, generator=source).double(), torch.randn(8, generator=source).double()
    matrix = root @ root.T + torch.eye(8).double()
    found = conjugate_gradient(lambda x: matrix @ x, target, max_steps=8)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, target))


def test_a_singular_matrix_with_a_target_in_its_range() -> None:
    matrix = torch.diag(torch.tensor([4.0, 1.0, 0.0])).double()
    found = conjugate_gradient(lambda x: matrix @ x, torch.tensor([8.0, 3.0, 0.0]).double(), max_steps=10)
    torch.testing.assert_close(found, torch.tensor([2.0, 3.0, 0.0], dtype=torch.float64))


def test_nothing_to_do_and_nothing_that_can_be_done() -> None:
    assert conjugate_gradient(lambda x: x, torch.zeros(3), max_steps=5).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=r"max_steps must be at least 1.*got max_steps=0"):
        conjugate_gradient(lambda x: x, torch.ones(3), max_steps=0)


def test_systems_apart_are_solved_as_if_alone() -> None:
    source = torch.Generator().manual_seed(0)
    root, target = torch.randn(3, 6, 6, generator=source).double(), torch.randn(3, 6, generator=source).double()
    matrix = root @ root.mT + torch.diag(torch.tensor([1.0, 9.0, 1.0, 4.0, 1.0, 1.0])).double()
    matrix[1] = torch.eye(6)  # done after one step, while the others go on
    target[2] = 0  # nothing to do
    for steps in (1, 3, 6):
        found = conjugate_gradient(lambda x: (matrix @ x[..., None])[..., 0], target, max_steps=steps, batch_dims=1)
        for system in range(3):
            alone = conjugate_gradient(partial(torch.mv, matrix[system]), target[system], max_steps=steps)
            torch.testing.assert_close(found[system], alone)
