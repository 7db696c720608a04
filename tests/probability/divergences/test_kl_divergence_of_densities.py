"""Divergences of densities and samples against closed forms."""

import pytest
import torch
from torch.distributions import Laplace, Normal
from torch.distributions import kl_divergence as library_divergence

from parnassus.probability import (
    density_ratio,
    is_absolutely_continuous,
    kl_by_quadrature,
    kl_by_sampling,
    kl_divergence,
)

P, Q = Normal(*torch.tensor([0.3, 0.8]).double()), Laplace(*torch.tensor([-0.2, 1.1]).double())


def test_quadrature_and_sampling_match_the_closed_form() -> None:
    torch.manual_seed(0)
    exact = library_divergence(P, Normal(*torch.tensor([1.0, 2.0]).double()))
    other = Normal(*torch.tensor([1.0, 2.0]).double())
    torch.testing.assert_close(kl_by_quadrature(P.log_prob, other.log_prob, low=-12.0, high=12.0), exact)
    sampled = kl_by_sampling(P.log_prob, other.log_prob, P.sample(torch.Size([50_000])))
    assert abs(sampled.mean - exact) < 4 * sampled.standard_error


def test_quadrature_and_sampling_agree_without_a_closed_form() -> None:
    torch.manual_seed(0)
    integral = kl_by_quadrature(P.log_prob, Q.log_prob, low=-10.0, high=10.0, points=100_001)
    sampled = kl_by_sampling(P.log_prob, Q.log_prob, P.sample(torch.Size([50_000])))
    assert abs(sampled.mean - integral) < 4 * sampled.standard_error


def test_points_where_p_is_zero_contribute_nothing() -> None:
    def uniform_on_unit_interval(x: torch.Tensor) -> torch.Tensor:
        return torch.where((x >= 0) & (x <= 1), 0.0, -torch.inf).double()

    def wider_uniform(x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, 0.25).log()

    actual = kl_by_quadrature(uniform_on_unit_interval, wider_uniform, low=-2.0, high=2.0, points=400_001)
    torch.testing.assert_close(actual, torch.tensor(4.0, dtype=torch.float64).log(), atol=1e-4, rtol=0)


def test_density_ratio_gives_the_divergence() -> None:
    p, q = torch.tensor([0.5, 0.5, 0.0, 0.0]), torch.tensor([0.25, 0.25, 0.5, 0.0])
    ratio = density_ratio(p, q)
    torch.testing.assert_close(ratio, torch.tensor([2.0, 2.0, 0.0, 1.0]))
    torch.testing.assert_close(torch.xlogy(p, ratio).sum(), kl_divergence(p, q))
    assert is_absolutely_continuous(torch.stack([p, q]), torch.stack([q, p])).tolist() == [True, False]


def test_missing_density_ratio_raises_value_error() -> None:
    with pytest.raises(ValueError, match="exists only if P ≪ Q"):
        density_ratio(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
