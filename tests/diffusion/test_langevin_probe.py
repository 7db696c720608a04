"""Walks under one's hands are those of the room's functions."""

import pytest
import torch

from parnassus.diffusion.langevin import langevin_path
from parnassus.diffusion.probes.langevin import DENSITIES, WALKERS, langevin_walk
from parnassus.touch import Curves, Numbers, Path, answer, controls_of


def walked(**values: object) -> tuple[Path, Curves, Numbers]:
    path, shares, numbers = answer(langevin_walk, None, controls_of(langevin_walk, None), values)
    assert isinstance(path, Path)
    assert isinstance(shares, Curves)
    assert isinstance(numbers, Numbers)
    return path, shares, numbers


def test_the_plain_walk_is_langevins() -> None:
    path, _, _ = walked(start=[1.0, 1.0], step=0.1, steps=7)
    torch.manual_seed(0)
    start = torch.tensor([[1.0, 1.0]]).expand(WALKERS, 2)
    truth = next(iter(DENSITIES.values()))
    states = torch.stack(list(langevin_path(truth.score, start, step=0.1, steps=7)))
    torch.testing.assert_close(path.places["walk 1"], states[:, 0])
    assert len(path.places["walk 1"]) == 8


def test_without_heat_all_walks_are_one_and_end_on_a_mode() -> None:
    path, _, numbers = walked(temperature=0, start=[1.0, 1.5], step=0.1, steps=200)
    ends = torch.stack([way[-1] for way in path.places.values()])
    assert float((ends - ends[0]).abs().max()) == 0
    torch.testing.assert_close(ends[0], torch.tensor([2.0, 2.0]), atol=1e-3, rtol=0)
    assert numbers.values["E‖x − E x‖² of the walkers"] == pytest.approx(0, abs=1e-9)


def test_long_steps_leave_the_plane_and_metropolis_stays() -> None:
    plain, exact = (walked(density=2, way=way, step=2.0, steps=100)[2].values for way in (0, 1))
    assert isinstance(plain["walkers outside the picture"], float)
    assert plain["walkers outside the picture"] > 100
    assert exact["walkers outside the picture"] == 0


def test_annealing_brings_the_weights_back_where_the_plain_walk_lost_them() -> None:
    """From beside the light mode."""
    shares = [walked(way=way, start=[-1.0, -1.0], step=0.05, steps=200)[1].lines["walkers"][1][-1] for way in (0, 2)]
    assert shares[0] < 0.1
    assert shares[1] > 0.6


def test_the_spread_beside_it_is_that_of_the_density() -> None:
    _, _, numbers = walked(density=1)
    torch.manual_seed(0)
    x, _ = list(DENSITIES.values())[1].draw(200_000)
    drawn = float((x - x.mean(0)).square().sum(1).mean())
    assert numbers.values["the same under p"] == pytest.approx(drawn, rel=0.02)


def test_walking_leaves_the_random_numbers_of_others_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    walked()
    assert torch.equal(torch.rand(1), expected)


def test_steps_of_no_length_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="step size c must be between"):
        walked(step=0)
