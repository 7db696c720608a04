"""Projections, pseudo-inverses and principal angles."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.linear.projection import (
    least_squares_code,
    principal_angles,
    projection_error,
    projection_error_from_eigenvalues,
    projection_matrix,
    pseudo_inverse,
    second_moment,
)
from parnassus.probability import standard_normal


def random_matrix(rows: int, columns: int, seed: int = 0) -> Tensor:
    return standard_normal(rows, columns, seed=seed)


def test_second_moment_of_two_rows() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    torch.testing.assert_close(second_moment(x), torch.tensor([[5.0, 1.0], [1.0, 2.0]]))


def test_pseudo_inverse_of_an_ill_conditioned_matrix() -> None:
    """Columns at an angle of 1e-5: the normal equations lose ten digits, QR loses five."""
    W = torch.tensor([[1.0, 1.0], [0.0, 1e-5], [0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(pseudo_inverse(W) @ W, torch.eye(2, dtype=torch.float64), atol=1e-10, rtol=0)


def test_least_squares_code_reproduces_points_of_the_span() -> None:
    W, z = random_matrix(6, 2), random_matrix(4, 2, seed=1)
    torch.testing.assert_close(least_squares_code(W, z @ W.mT), z)


def test_projection_onto_an_axis() -> None:
    P = projection_matrix(torch.tensor([[0.0], [-3.0], [0.0]]))
    torch.testing.assert_close(P, torch.diag(torch.tensor([0.0, 1.0, 0.0])))


def test_projection_error_of_an_axis_is_the_remaining_variance() -> None:
    sigma = torch.diag(torch.tensor([4.0, 2.0, 1.0]))
    torch.testing.assert_close(projection_error(torch.eye(3)[:, :1], sigma), torch.tensor(3.0))


def test_projection_error_of_a_set_of_eigenvectors() -> None:
    eigenvalues = torch.tensor([5.0, 3.0, 1.0])
    assert projection_error_from_eigenvalues(eigenvalues, [2, 0]) == 3.0
    assert projection_error_from_eigenvalues(eigenvalues, []) == 9.0


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 1.5707963])
def test_principal_angles_of_two_lines(angle: float) -> None:
    """Includes angles far below √ε, whose cosine rounds to 1."""
    theta = torch.tensor(angle, dtype=torch.float64)
    a = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    b = -2 * torch.stack([theta.cos(), theta.sin()])[:, None]
    torch.testing.assert_close(principal_angles(a, b), theta[None], atol=1e-12, rtol=0)


def test_planes_that_share_a_line_have_one_angle_zero() -> None:
    e = torch.eye(3, dtype=torch.float64)
    angles = principal_angles(e[:, [0, 1]], e[:, [0, 2]])
    torch.testing.assert_close(angles, torch.tensor([torch.pi / 2, 0.0], dtype=torch.float64))


def test_dependent_columns_raise() -> None:
    with pytest.raises(ValueError, match=r"independent columns; got rank 1 with 2 columns"):
        projection_matrix(torch.ones(4, 2))


def test_repeated_eigenvectors_raise() -> None:
    with pytest.raises(ValueError, match=r"each index at most once; got kept=\[0, 0\]"):
        projection_error_from_eigenvalues(torch.ones(3), [0, 0])
