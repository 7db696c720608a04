"""Evidence estimates compared with known values."""

from math import log

import pytest
import torch
from torch.distributions import Categorical, Normal

from parnassus.probability import (
    collision_probability,
    effective_sample_size,
    evidence_by_importance_sampling,
    evidence_by_prior_sampling,
    evidence_from_weights,
    log_mean_exp,
)


def test_log_mean_exp_along_any_axis() -> None:
    values = torch.randn(4, 5, 6, dtype=torch.float64)
    for dim in (0, 1, 2, -1):
        torch.testing.assert_close(log_mean_exp(values, dim), values.exp().mean(dim).log())
    torch.testing.assert_close(log_mean_exp(torch.full((7,), 5e4)), torch.tensor(5e4))


def test_effective_sample_size_of_known_weights() -> None:
    weights = torch.tensor([[1.0, 1.0, 1.0, 1.0], [4.0, 0.0, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(effective_sample_size(weights.log()), torch.tensor([4.0, 1.0, 1.6, 0.0]))
    torch.testing.assert_close(effective_sample_size(weights.log().T, 0), torch.tensor([4.0, 1.0, 1.6, 0.0]))


def test_spread_is_the_relative_standard_error_of_the_mean_weight() -> None:
    weights = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    estimate = evidence_from_weights(weights.log())
    torch.testing.assert_close(estimate.log_evidence, torch.tensor(log(3), dtype=torch.float64))
    torch.testing.assert_close(estimate.relative_standard_error, weights.std() / 3**0.5 / 3)
    assert estimate.draws == 3


def test_estimates_match_the_exact_evidence() -> None:
    torch.manual_seed(0)
    z, noise = Normal(0.0, 1.0), 0.7
    x = torch.tensor([-1.0, 0.3, 2.0])
    exact = Normal(0.0, (1 + noise**2) ** 0.5).log_prob(x)
    by_prior = evidence_by_prior_sampling(lambda draws: Normal(draws[:, None], noise).log_prob(x), z, 40_000)
    by_proposal = evidence_by_importance_sampling(
        lambda draws: z.log_prob(draws)[:, None] + Normal(draws[:, None], noise).log_prob(x), Normal(0.5, 1.5), 40_000
    )
    for estimate in (by_prior, by_proposal):
        assert estimate.log_evidence.shape == (3,)
        assert bool(((estimate.log_evidence - exact).abs() < 4 * estimate.relative_standard_error).all())
        assert estimate.warning == ""


def test_small_effective_sample_size_gives_a_warning() -> None:
    log_weights = torch.full((1_000,), -50.0)
    log_weights[3] = 0.0
    assert "effective sample size is 1 of 1000 draws" in evidence_from_weights(log_weights).warning
    assert evidence_from_weights(torch.zeros(1_000)).warning == ""


def test_zero_weights_give_minus_infinity() -> None:
    estimate = evidence_from_weights(torch.full((5,), -torch.inf))
    assert (
        float(estimate.log_evidence),
        float(estimate.relative_standard_error),
        float(estimate.effective_sample_size),
    ) == (
        -torch.inf,
        torch.inf,
        0.0,
    )
    assert estimate.warning


def test_posterior_as_proposal_gives_the_exact_evidence() -> None:
    log_joint = torch.tensor([0.1, 0.4, 0.2], dtype=torch.float64).log()
    estimate = evidence_by_importance_sampling(lambda z: log_joint[z], Categorical(logits=log_joint), 2)
    torch.testing.assert_close(estimate.log_evidence.exp(), torch.tensor(0.7, dtype=torch.float64))


def test_collision_probability_matches_hand_computation() -> None:
    torch.testing.assert_close(collision_probability(torch.tensor([0.5, 0.25, 0.25])), torch.tensor(0.375))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must not be empty; got dim=-1, shape"):
        log_mean_exp(torch.zeros(3, 0))
    with pytest.raises(ValueError, match="at least two draws; got 1"):
        evidence_from_weights(torch.zeros(1))
    with pytest.raises(ValueError, match=r"some are NaN or \+∞"):
        evidence_from_weights(torch.tensor([0.0, torch.nan]))
    with pytest.raises(ValueError, match="must sum to one"):
        collision_probability(torch.tensor([0.5, 0.6]))


def test_effective_sample_size_does_not_depend_on_the_scale_of_the_weights() -> None:
    """At −10⁶ the difference of two log-sum-exps has no digit left in float32."""
    log_weights = torch.tensor([0.0, -1.0, -2.0, -torch.inf])
    expected = effective_sample_size(log_weights.double())
    for offset in (0.0, -1e6, 1e6):
        torch.testing.assert_close(effective_sample_size(log_weights + offset).double(), expected, rtol=1e-6, atol=0)
