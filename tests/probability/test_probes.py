"""The cut through a pair: what it shows is what conditioning says."""

from typing import cast

import pytest
import torch

from parnassus.probability.probes.conditioning import see_one_of_two
from parnassus.touch import Curves, Numbers, Path, answer, controls_of

CONTROLS = controls_of(see_one_of_two, None)


def seen(**values: object) -> tuple[Path, Curves, Numbers]:
    path, bells, numbers = answer(see_one_of_two, None, CONTROLS, values)
    return cast("Path", path), cast("Curves", bells), cast("Numbers", numbers)


def test_the_mean_moves_along_a_line_and_the_width_stays() -> None:
    for y in (-2.0, 0.0, 3.0):
        path, bells, numbers = seen(place=[0.0, y], correlation=0.6, deviation=2.0)
        assert numbers.values["E[X | y]"] == pytest.approx(0.6 * 2.0 * y)
        assert numbers.values["and once Y is seen"] == pytest.approx(2.0 * 0.8)
        assert bells.marked == pytest.approx(1.2 * y)
        assert path.places["Y = y"][:, 1].tolist() == [y, y]


def test_without_correlation_nothing_is_learnt() -> None:
    _, bells, numbers = seen(place=[0.5, 2.0], correlation=0.0)
    before, after = (torch.tensor(line[1]) for line in bells.lines.values())
    torch.testing.assert_close(before, after)
    assert numbers.values["p(x | y) there"] == pytest.approx(numbers.values["p(x) at x = 0.50, before"])


def test_both_bells_are_densities_and_levels_grow_from_the_mean() -> None:
    path, bells, _ = seen(place=[0.0, 1.0], correlation=-0.9)
    for x, density in bells.lines.values():
        assert float(torch.trapezoid(torch.tensor(density), torch.tensor(x))) == pytest.approx(1.0, abs=1e-3)
    assert float(path.levels.min()) == float(path.levels[40, 40]) == 0.0
    low, high = path.levels[60, 20], path.levels[60, 60]  # up and to the left, up and to the right
    assert low < high
