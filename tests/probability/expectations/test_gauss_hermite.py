"""Gauss-Hermite quadrature of known integrals."""

import pytest
import torch

from parnassus.probability import Gaussian, gaussian_expectation


def test_quadrature_of_polynomials_is_exact_up_to_the_degree() -> None:
    distribution = Gaussian(torch.zeros(1).double(), torch.ones(1, 1).double())
    exact = gaussian_expectation(lambda x: x[0] ** 6, distribution, nodes=4)
    inexact = gaussian_expectation(lambda x: x[0] ** 6, distribution, nodes=3)
    assert float(exact) == pytest.approx(15.0)
    assert float(inexact) != pytest.approx(15.0, rel=0.1)  # degree 6 > 2 · 3 − 1


def test_vector_functions_and_singular_distributions() -> None:
    distribution = Gaussian(torch.tensor([1.0, 2.0]).double(), torch.ones(2, 2).double())
    second_moment = gaussian_expectation(lambda x: torch.outer(x, x), distribution, nodes=3)
    torch.testing.assert_close(
        second_moment, distribution.covariance + torch.outer(distribution.mean, distribution.mean)
    )
    assert float(gaussian_expectation(lambda x: (x[1] - x[0] - 1) ** 2, distribution, nodes=3)) == pytest.approx(
        0.0, abs=1e-15
    )


def test_cosine_is_the_characteristic_function() -> None:
    distribution = Gaussian(torch.tensor([0.4]).double(), torch.tensor([[0.7]]).double())
    expected = torch.tensor(0.4).double().cos() * torch.tensor(-0.35).double().exp()
    torch.testing.assert_close(gaussian_expectation(lambda x: x[0].cos(), distribution), expected)


def test_invalid_input_raises_value_error() -> None:
    high_dimensional = Gaussian(torch.zeros(9), torch.eye(9))
    with pytest.raises(ValueError, match=r"need 1 ≤ nodes and nodes\^dim ≤ 2,000,000; got nodes=20, dim=9"):
        gaussian_expectation(lambda x: x.sum(), high_dimensional)
    with pytest.raises(ValueError, match="must not be batched; got means of shape"):
        gaussian_expectation(lambda x: x.sum(), Gaussian(torch.zeros(3, 2), torch.eye(2)))
