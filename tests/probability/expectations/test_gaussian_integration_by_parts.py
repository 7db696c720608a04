"""Integration by parts on functions with known moments, and the residual decomposition."""

import pytest
import torch

from parnassus.probability import (
    Gaussian,
    gaussian_integration_by_parts,
    moment_by_pairings,
    residual_decomposition,
    residuals,
)

SIGMA = torch.tensor([[1.5, 0.3, -0.2], [0.3, 2.0, 0.5], [-0.2, 0.5, 0.7]], dtype=torch.float64)
LAW = Gaussian(torch.zeros(3, dtype=torch.float64), SIGMA)


def test_both_sides_are_the_moment() -> None:
    parts = gaussian_integration_by_parts(lambda x: x[0] * x[1] ** 2, LAW, coordinate=2)
    expected = moment_by_pairings(SIGMA, (2, 0, 1, 1))
    torch.testing.assert_close(parts.product, expected)
    torch.testing.assert_close(parts.derivative, expected)


def test_an_exponential_is_known_too() -> None:
    """E[X_k e^⟨a, X⟩] = (Σa)_k e^(½ aᵀΣa)."""
    a = torch.tensor([0.2, -0.4, 0.1], dtype=torch.float64)
    parts = gaussian_integration_by_parts(lambda x: (a @ x).exp(), LAW, coordinate=1)
    expected = (SIGMA @ a)[1] * LAW.moment_generating_function(a)
    torch.testing.assert_close(parts.product, expected)
    torch.testing.assert_close(parts.derivative, expected)


@pytest.mark.parametrize("coordinate", [0, 2])
def test_the_rest_knows_nothing_of_the_part(coordinate: int) -> None:
    split = residual_decomposition(LAW, coordinate)
    z = LAW.sample(1_000)
    rest = residuals(z, split.direction, coordinate)
    assert split.direction[coordinate] == 1.0
    torch.testing.assert_close(rest[:, coordinate], torch.zeros(1_000, dtype=torch.float64))
    torch.testing.assert_close(rest + z[:, coordinate, None] * split.direction, z)
    projection = torch.eye(3, dtype=torch.float64)
    projection[:, coordinate] -= split.direction
    torch.testing.assert_close(projection @ SIGMA[:, coordinate], torch.zeros(3, dtype=torch.float64))
    assert int(split.residual.rank) == 2


def test_what_cannot_be_split_is_rejected() -> None:
    flat = Gaussian(torch.zeros(2), torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="must have a positive variance; got 0"):
        residual_decomposition(flat)
    with pytest.raises(ValueError, match=r"must be centred; got mean=\[1.0, 0.0\]"):
        residual_decomposition(Gaussian(torch.tensor([1.0, 0.0]), torch.eye(2)))
