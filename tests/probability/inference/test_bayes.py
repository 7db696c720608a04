"""Bayes' theorem on small tables compared with hand computations."""

import pytest
import torch

from parnassus.probability import bayes_theorem, posterior_table


def test_posterior_of_two_urns() -> None:
    """Urn A contains 3 red balls of 4 and urn B 1 of 4; P(A) = 2 P(B)."""
    prior = torch.tensor([2 / 3, 1 / 3], dtype=torch.float64)
    likelihood = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    posterior, evidence = posterior_table(prior, likelihood)
    torch.testing.assert_close(evidence, torch.tensor([7 / 12, 5 / 12], dtype=torch.float64))
    torch.testing.assert_close(posterior, torch.tensor([[6 / 7, 1 / 7], [2 / 5, 3 / 5]], dtype=torch.float64))
    assert bayes_theorem(0.75, 2 / 3, 7 / 12) == pytest.approx(6 / 7)


def test_hypotheses_of_prior_zero_have_posterior_zero() -> None:
    posterior, _ = posterior_table(torch.tensor([1.0, 0.0]), torch.tensor([[0.5, 0.5], [0.1, 0.9]]))
    assert posterior.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_invalid_tables_raise_value_error() -> None:
    prior, likelihood = torch.tensor([0.5, 0.5]), torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    with pytest.raises(ValueError, match=r"P\(observation\) must be positive; it is 0 for observations \[2\]"):
        posterior_table(prior, likelihood)
    with pytest.raises(ValueError, match="a row of likelihood sums to"):
        posterior_table(prior, 2 * likelihood)
    with pytest.raises(ValueError, match="a row of prior sums to"):
        posterior_table(2 * prior, likelihood)
    with pytest.raises(ValueError, match="one row per hypothesis; got 1 hypotheses, 2 rows"):
        posterior_table(torch.ones(1), likelihood)


@pytest.mark.parametrize(
    ("likelihood", "prior", "evidence", "message"),
    [
        (0.5, 0.5, 0.0, r"P\(B\) must be positive"),
        (1.5, 0.5, 0.9, r"P\(B\|A\) must lie in \[0, 1\]; got 1.5"),
        (0.5, -0.5, 0.9, r"P\(A\) must lie in \[0, 1\]; got -0.5"),
        (0.9, 0.9, 0.5, r"must not exceed P\(B\); got 0.81 > 0.5"),
        (0.5, float("nan"), 0.5, r"P\(A\) must lie in \[0, 1\]; got nan"),
    ],
)
def test_invalid_events_raise_value_error(likelihood: float, prior: float, evidence: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayes_theorem(likelihood, prior, evidence)
