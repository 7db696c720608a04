"""The model of a noisy observation against numerical integration."""

import torch

from parnassus.probability import float64_tensor
from parnassus.probability.textbook.noisy_observation import (
    log_evidence,
    log_joint,
    log_likelihood,
    posterior,
    prior,
    relative_variance,
    typical_observation,
)

X, Z = float64_tensor(0.8), torch.linspace(-10, 10, 4_001, dtype=torch.float64)[:, None]


def test_evidence_and_posterior_match_integration() -> None:
    joint = log_joint(X, Z).exp()
    evidence = torch.trapezoid(joint, Z[:, 0])
    torch.testing.assert_close(log_evidence(X).exp(), evidence)
    torch.testing.assert_close(posterior(X).log_prob(Z).exp(), joint / evidence)


def test_relative_variance_matches_integration() -> None:
    square = torch.trapezoid((prior(1).log_prob(Z) + 2 * log_likelihood(X, Z)).exp(), Z[:, 0])
    torch.testing.assert_close(relative_variance(X), square / (2 * log_evidence(X)).exp() - 1)


def test_coordinates_are_independent() -> None:
    torch.testing.assert_close(log_evidence(typical_observation(5)), 5 * log_evidence(typical_observation(1)))


def test_posterior_is_widened_by_the_scale() -> None:
    torch.testing.assert_close(posterior(X, std_scale=1.4).stddev, 1.4 * posterior(X).stddev)
