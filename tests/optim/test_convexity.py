"""Chords, Hessians, lines and the proof that local minima are global."""

from math import pi

import pytest
import torch
from torch import Tensor

from parnassus.optim import (
    chord_gap,
    find_low_chord,
    flat_floor,
    least_curvature,
    linearisation_error,
    lower_nearby,
    on_line,
    plateau,
    sampled_wave,
    upturned_bell,
    wave,
)


def source() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def points(dim: int = 2, count: int = 200) -> Tensor:
    return torch.randn(count, dim, generator=source(), dtype=torch.float64)


def bowl(x: Tensor) -> Tensor:
    return x.square().sum()


def test_the_gap_of_a_square_is_the_spread_of_its_ends() -> None:
    """λa² + (1−λ)b² − (λa + (1−λ)b)² = λ(1−λ)(a − b)²."""
    a, b, weight = points(), points().flip(0), torch.rand(200, generator=source(), dtype=torch.float64)
    spread = weight * (1 - weight) * (a - b).square().sum(-1)
    torch.testing.assert_close(chord_gap(bowl, a, b, weight), spread)


def test_a_low_chord_proves_itself() -> None:
    found = find_low_chord(lambda x: x.cos().sum(), points(), generator=source())
    assert found is not None
    gap = chord_gap(lambda x: x.cos().sum(), found.a[None], found.b[None], torch.tensor([found.weight]).double())
    assert float(gap) < -0.1


def test_rounding_is_not_taken_for_a_low_chord() -> None:
    assert find_low_chord(lambda x: 1e6 * x.sum() + 1 / 3, points(), generator=source()) is None
    assert find_low_chord(lambda x: x.abs().sum(), points(), generator=source()) is None


def test_a_slight_dent_is_found() -> None:
    assert find_low_chord(lambda x: bowl(x) + 0.3 * (5 * x).cos().sum(), points(), generator=source()) is not None


def test_the_least_curvature_of_a_quadratic_is_an_eigenvalue() -> None:
    matrix = torch.tensor([[2.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
    least = torch.linalg.eigvalsh(matrix)[0]
    torch.testing.assert_close(least_curvature(lambda x: x @ matrix @ x / 2, points()), least.expand(200))


def test_a_line_passes_through_both_points() -> None:
    x, y = points()[:2]
    along = on_line(bowl, x, y)
    torch.testing.assert_close(along(torch.ones(1)), bowl(x))
    torch.testing.assert_close(along(torch.zeros(1)), bowl(y))
    torch.testing.assert_close(least_curvature(along, torch.zeros(1, 1).double()), 2 * (x - y).square().sum()[None])


def test_the_nearby_point_is_as_near_as_asked_and_no_nearer() -> None:
    star, lower = torch.tensor([3.0, 4.0]).double(), torch.zeros(2).double()
    nearby = lower_nearby(bowl, star, lower, reach=0.5)
    assert nearby.weight == pytest.approx(0.9)
    torch.testing.assert_close(nearby.point, 0.9 * star)
    assert nearby.value == pytest.approx(0.81 * 25)
    assert nearby.granted == pytest.approx(0.9 * 25)
    torch.testing.assert_close(lower_nearby(bowl, star, lower, reach=100.0).point, lower)


def test_the_error_of_a_tangent_to_a_cubic_is_known() -> None:
    """(1 + ε)³ = 1 + 3ε + 3ε² + ε³."""
    eps = torch.tensor([[0.5], [-0.1], [0.0]], dtype=torch.float64)
    error = linearisation_error(lambda x: x.pow(3).sum(), torch.ones(1, dtype=torch.float64), eps)
    torch.testing.assert_close(error, (3 * eps**2 + eps**3)[:, 0])


def test_the_landscapes_are_what_they_say() -> None:
    x = torch.tensor([0.5, -2.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(wave(x), torch.tensor(-3.0).double())
    torch.testing.assert_close(sampled_wave(x), -3.0 + 0.2 * (torch.cos(5 * pi * x)).sum())
    torch.testing.assert_close(flat_floor(x), torch.tensor(1.0).double())
    torch.testing.assert_close(upturned_bell(x[:1]), 1 - torch.exp(torch.tensor(-1.0).double()))
    torch.testing.assert_close(plateau(x), x.tanh().sum())


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="a chord needs two points; got a cloud of 1"):
        find_low_chord(bowl, points(count=1), generator=source())
    with pytest.raises(ValueError, match=r"need reach > 0 and two different points; got reach=0\.0"):
        lower_nearby(bowl, points()[0], points()[1], reach=0.0)
