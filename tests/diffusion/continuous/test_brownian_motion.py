"""Brownian motion: its covariance, the bridge that refines it, and sums with known values."""

import pytest
import torch

from parnassus.diffusion.continuous.brownian_motion import (
    ito_sum,
    quadratic_variation,
    refine_path,
    stratonovich_sum,
    wiener_process,
)

UNEVEN = torch.tensor([0.0, 0.3, 0.5, 1.5, 2.0], dtype=torch.float64)


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_covariance_of_two_times_is_the_earlier_one() -> None:
    path = wiener_process(UNEVEN, (50_000,), generator=source())
    expected = torch.minimum(UNEVEN[:, None], UNEVEN)
    torch.testing.assert_close(path @ path.mT / path.shape[1], expected, atol=0.04, rtol=0)
    assert bool((path[0] == 0).all())


def test_a_refined_path_keeps_its_places_and_is_again_brownian() -> None:
    path = wiener_process(UNEVEN, (50_000,), generator=source(1))
    times, finer = refine_path(UNEVEN, path, generator=source(2))
    torch.testing.assert_close(times[::2], UNEVEN, atol=0, rtol=0)
    torch.testing.assert_close(finer[::2], path, atol=0, rtol=0)
    expected = torch.minimum(times[:, None], times)
    torch.testing.assert_close(finer @ finer.mT / finer.shape[1], expected, atol=0.04, rtol=0)


def test_the_ito_sum_of_the_path_itself_is_half_of_its_square_less_its_quadratic_variation() -> None:
    path = wiener_process(UNEVEN, (7, 3), generator=source())
    expected = (path.square() - quadratic_variation(path)) / 2
    torch.testing.assert_close(ito_sum(path, path), expected)


def test_a_sum_over_both_ends_obeys_the_chain_rule() -> None:
    path = wiener_process(UNEVEN, (7,), generator=source())
    torch.testing.assert_close(stratonovich_sum(path, path), path.square() / 2)


def test_a_constant_integrand_gives_back_the_path() -> None:
    path = wiener_process(UNEVEN, (5,), generator=source())
    torch.testing.assert_close(ito_sum(torch.full_like(path, 3.0), path), 3 * path)


@pytest.mark.parametrize("times", [[0.0], [0.0, 1.0, 1.0], [1.0, 0.0]])
def test_times_must_rise(times: list[float]) -> None:
    with pytest.raises(ValueError, match="increase strictly"):
        wiener_process(torch.tensor(times))
