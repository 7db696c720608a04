"""Convexity tests by chords, Hessians and lines; points near a local minimum."""

from math import pi

import pytest
import torch
from torch import Tensor

from parnassus.optim import (
    chord_gap,
    cosine_risk,
    empirical_cosine_risk,
    find_violating_chord,
    flat_minimum,
    inverted_gaussian,
    linearisation_error,
    min_hessian_eigenvalue,
    nearby_lower_point,
    restrict_to_line,
    tanh_plateau,
)
from parnassus.probability import seeded_generator, standard_normal, uniform_samples


def sample_points(dim: int = 2, count: int = 200) -> Tensor:
    return standard_normal(count, dim)


def squared_norm(x: Tensor) -> Tensor:
    return x.square().sum()


def test_chord_gap_of_the_squared_norm_matches_the_closed_form() -> None:
    """λa² + (1−λ)b² − (λa + (1−λ)b)² = λ(1−λ)(a − b)²."""
    a, b, weight = (
        sample_points(),
        sample_points().flip(0),
        uniform_samples(200),
    )
    expected = weight * (1 - weight) * (a - b).square().sum(-1)
    torch.testing.assert_close(chord_gap(squared_norm, a, b, weight), expected)


def test_violating_chord_lies_below_the_graph() -> None:
    chord = find_violating_chord(lambda x: x.cos().sum(), sample_points(), generator=seeded_generator())
    assert chord is not None
    gap = chord_gap(lambda x: x.cos().sum(), chord.a[None], chord.b[None], torch.tensor([chord.weight]).double())
    assert float(gap) < -0.1


def test_rounding_errors_are_not_reported_as_violations() -> None:
    assert find_violating_chord(lambda x: 1e6 * x.sum() + 1 / 3, sample_points(), generator=seeded_generator()) is None
    assert find_violating_chord(lambda x: x.abs().sum(), sample_points(), generator=seeded_generator()) is None


def test_small_nonconvexity_is_detected() -> None:
    assert (
        find_violating_chord(
            lambda x: squared_norm(x) + 0.3 * (5 * x).cos().sum(), sample_points(), generator=seeded_generator()
        )
        is not None
    )


def test_smallest_curvature_of_a_quadratic_is_an_eigenvalue() -> None:
    matrix = torch.tensor([[2.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
    smallest = torch.linalg.eigvalsh(matrix)[0]
    torch.testing.assert_close(
        min_hessian_eigenvalue(lambda x: x @ matrix @ x / 2, sample_points()), smallest.expand(200)
    )


def test_line_passes_through_both_points() -> None:
    x, y = sample_points()[:2]
    restriction = restrict_to_line(squared_norm, x, y)
    torch.testing.assert_close(restriction(torch.ones(1)), squared_norm(x))
    torch.testing.assert_close(restriction(torch.zeros(1)), squared_norm(y))
    torch.testing.assert_close(
        min_hessian_eigenvalue(restriction, torch.zeros(1, 1).double()), 2 * (x - y).square().sum()[None]
    )


def test_nearby_point_is_at_the_given_radius() -> None:
    star, lower = torch.tensor([3.0, 4.0]).double(), torch.zeros(2).double()
    nearby = nearby_lower_point(squared_norm, star, lower, radius=0.5)
    assert nearby.weight == pytest.approx(0.9)
    torch.testing.assert_close(nearby.point, 0.9 * star)
    assert nearby.value == pytest.approx(0.81 * 25)
    assert nearby.bound == pytest.approx(0.9 * 25)
    torch.testing.assert_close(nearby_lower_point(squared_norm, star, lower, radius=100.0).point, lower)


def test_linearisation_error_of_a_cubic_matches_the_closed_form() -> None:
    """(1 + ε)³ = 1 + 3ε + 3ε² + ε³."""
    eps = torch.tensor([[0.5], [-0.1], [0.0]], dtype=torch.float64)
    error = linearisation_error(lambda x: x.pow(3).sum(), torch.ones(1, dtype=torch.float64), eps)
    torch.testing.assert_close(error, (3 * eps**2 + eps**3)[:, 0])


def test_functions_match_their_closed_forms() -> None:
    x = torch.tensor([0.5, -2.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(cosine_risk(x), torch.tensor(-3.0).double())
    torch.testing.assert_close(empirical_cosine_risk(x), -3.0 + 0.2 * (torch.cos(5 * pi * x)).sum())
    torch.testing.assert_close(flat_minimum(x), torch.tensor(1.0).double())
    torch.testing.assert_close(inverted_gaussian(x[:1]), 1 - torch.exp(torch.tensor(-1.0).double()))
    torch.testing.assert_close(tanh_plateau(x), x.tanh().sum())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="a chord needs at least two points; got 1"):
        find_violating_chord(squared_norm, sample_points(count=1), generator=seeded_generator())
    with pytest.raises(ValueError, match=r"need radius > 0 and two different points; got radius=0\.0"):
        nearby_lower_point(squared_norm, sample_points()[0], sample_points()[1], radius=0.0)
