"""Brownian motion: its covariance, its refinement, and stochastic sums with known values."""

import pytest
import torch

from parnassus.diffusion.continuous.brownian_motion import (
    ito_sum,
    quadratic_variation,
    refine_path,
    stratonovich_sum,
    wiener_process,
)
from parnassus.probability import seeded_generator

TIMES = torch.tensor([0.0, 0.3, 0.5, 1.5, 2.0], dtype=torch.float64)


def test_covariance_is_the_minimum_of_the_times() -> None:
    path = wiener_process(TIMES, (50_000,), generator=seeded_generator())
    expected = torch.minimum(TIMES[:, None], TIMES)
    torch.testing.assert_close(path @ path.mT / path.shape[1], expected, atol=0.04, rtol=0)
    assert bool((path[0] == 0).all())


def test_refined_path_keeps_its_values_and_is_brownian() -> None:
    path = wiener_process(TIMES, (50_000,), generator=seeded_generator(1))
    times, finer = refine_path(TIMES, path, generator=seeded_generator(2))
    torch.testing.assert_close(times[::2], TIMES, atol=0, rtol=0)
    torch.testing.assert_close(finer[::2], path, atol=0, rtol=0)
    expected = torch.minimum(times[:, None], times)
    torch.testing.assert_close(finer @ finer.mT / finer.shape[1], expected, atol=0.04, rtol=0)


def test_ito_integral_of_the_path_matches_closed_form() -> None:
    path = wiener_process(TIMES, (7, 3), generator=seeded_generator())
    expected = (path.square() - quadratic_variation(path)) / 2
    torch.testing.assert_close(ito_sum(path, path), expected)


def test_stratonovich_sum_satisfies_the_chain_rule() -> None:
    path = wiener_process(TIMES, (7,), generator=seeded_generator())
    torch.testing.assert_close(stratonovich_sum(path, path), path.square() / 2)


def test_integral_of_a_constant_is_a_multiple_of_the_path() -> None:
    path = wiener_process(TIMES, (5,), generator=seeded_generator())
    torch.testing.assert_close(ito_sum(torch.full_like(path, 3.0), path), 3 * path)


@pytest.mark.parametrize("times", [[0.0], [0.0, 1.0, 1.0], [1.0, 0.0]])
def test_non_increasing_times_raise_value_error(times: list[float]) -> None:
    with pytest.raises(ValueError, match="increase strictly"):
        wiener_process(torch.tensor(times))
