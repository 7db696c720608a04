"""Jensen's inequality compared with hand computations."""

from math import exp, log

import pytest
import torch

from parnassus.probability import jensen_inequality, jensen_merge_path, normal_log_density, prior_evidence_bound

ENDS = torch.tensor([0.0, 4.0], dtype=torch.float64)
WEIGHTS = torch.tensor([0.75, 0.25], dtype=torch.float64)


def test_both_sides_for_the_square() -> None:
    sides = jensen_inequality(torch.square, ENDS, WEIGHTS)
    assert (float(sides.function_of_mean), float(sides.mean_of_function), float(sides.gap)) == (1.0, 4.0, 3.0)


def test_vector_points() -> None:
    corners = torch.eye(3, dtype=torch.float64)
    uniform = torch.full((3,), 1 / 3, dtype=torch.float64)
    sides = jensen_inequality(lambda x: x.amax(-1), corners, uniform)
    assert float(sides.gap) == pytest.approx(2 / 3)


def test_merge_path_goes_from_mean_of_function_to_function_of_mean() -> None:
    x = torch.tensor([3.0, 3.0, -1.0, 0.5], dtype=torch.float64)
    p = torch.tensor([0.0, 0.0, 0.5, 0.5], dtype=torch.float64)
    sums = jensen_merge_path(torch.exp, x, p)
    start, end = (exp(-1) + exp(0.5)) / 2, exp(-0.25)
    torch.testing.assert_close(sums, torch.tensor([start, start, start, end], dtype=torch.float64))


def test_latent_states_of_probability_zero_are_ignored() -> None:
    likelihood = torch.tensor([log(0.2), -torch.inf], dtype=torch.float64)
    bound = prior_evidence_bound(likelihood, torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert float(bound.bound) == pytest.approx(-log(0.2))
    assert float(bound.nll) == pytest.approx(-log(0.2))


def test_bound_holds_for_distant_observations() -> None:
    likelihood = normal_log_density(torch.tensor([60.0, 60.0]), mean=torch.tensor([0.0, 10.0]), variance=1.0)
    bound = prior_evidence_bound(likelihood, torch.tensor([0.5, 0.5]))
    assert float(bound.bound) > float(bound.nll) == pytest.approx(1250 + 0.919 + log(2), rel=1e-4)


def test_invalid_weights_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must sum to one"):
        jensen_inequality(torch.square, ENDS, 2 * WEIGHTS)
    with pytest.raises(ValueError, match="a row of weights sums to 2"):
        jensen_merge_path(torch.square, ENDS, 2 * WEIGHTS)
    with pytest.raises(ValueError, match="a row of prior sums to 0"):
        prior_evidence_bound(torch.zeros(2), torch.zeros(2))
