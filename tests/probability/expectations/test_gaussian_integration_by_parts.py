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
GAUSSIAN = Gaussian(torch.zeros(3, dtype=torch.float64), SIGMA)


def test_both_sides_match_the_moment() -> None:
    parts = gaussian_integration_by_parts(lambda x: x[0] * x[1] ** 2, GAUSSIAN, coordinate=2)
    expected = moment_by_pairings(SIGMA, (2, 0, 1, 1))
    torch.testing.assert_close(parts.product, expected)
    torch.testing.assert_close(parts.derivative, expected)


def test_integration_by_parts_of_an_exponential_matches_closed_form() -> None:
    """E[X_k e^⟨a, X⟩] = (Σa)_k e^(½ aᵀΣa)."""
    a = torch.tensor([0.2, -0.4, 0.1], dtype=torch.float64)
    parts = gaussian_integration_by_parts(lambda x: (a @ x).exp(), GAUSSIAN, coordinate=1)
    expected = (SIGMA @ a)[1] * GAUSSIAN.moment_generating_function(a)
    torch.testing.assert_close(parts.product, expected)
    torch.testing.assert_close(parts.derivative, expected)


@pytest.mark.parametrize("coordinate", [0, 2])
def test_residual_is_uncorrelated_with_the_coordinate(coordinate: int) -> None:
    decomposition = residual_decomposition(GAUSSIAN, coordinate)
    z = GAUSSIAN.sample(1_000)
    residual = residuals(z, decomposition.direction, coordinate)
    assert decomposition.direction[coordinate] == 1.0
    torch.testing.assert_close(residual[:, coordinate], torch.zeros(1_000, dtype=torch.float64))
    torch.testing.assert_close(residual + z[:, coordinate, None] * decomposition.direction, z)
    projection = torch.eye(3, dtype=torch.float64)
    projection[:, coordinate] -= decomposition.direction
    torch.testing.assert_close(projection @ SIGMA[:, coordinate], torch.zeros(3, dtype=torch.float64))
    assert int(decomposition.residual.rank) == 2


def test_invalid_decompositions_raise_value_error() -> None:
    degenerate = Gaussian(torch.zeros(2), torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="must have a positive variance; got 0"):
        residual_decomposition(degenerate)
    with pytest.raises(ValueError, match=r"must be centred; got mean=\[1.0, 0.0\]"):
        residual_decomposition(Gaussian(torch.tensor([1.0, 0.0]), torch.eye(2)))
