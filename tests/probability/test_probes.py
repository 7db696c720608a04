"""The probe of Gaussian conditioning agrees with the formulas."""

from typing import cast

import pytest
import torch

from parnassus.probability.probes.gaussian_conditioning import condition_gaussian_pair
from parnassus.widgets import Curves, Numbers, Trajectories, evaluate_probe, read_controls

CONTROLS = read_controls(condition_gaussian_pair, None)


def evaluate(**values: object) -> tuple[Trajectories, Curves, Numbers]:
    path, densities, numbers = evaluate_probe(condition_gaussian_pair, None, CONTROLS, values)
    return cast("Trajectories", path), cast("Curves", densities), cast("Numbers", numbers)


def test_conditional_mean_is_linear_and_variance_is_constant() -> None:
    for y in (-2.0, 0.0, 3.0):
        path, densities, numbers = evaluate(point=[0.0, y], correlation=0.6, deviation=2.0)
        assert numbers.values["E[X | y]"] == pytest.approx(0.6 * 2.0 * y)
        assert numbers.values["standard deviation of X given y"] == pytest.approx(2.0 * 0.8)
        assert densities.marked == pytest.approx(1.2 * y)
        assert path.paths["Y = y"][:, 1].tolist() == [y, y]


def test_uncorrelated_observation_has_no_effect() -> None:
    _, densities, numbers = evaluate(point=[0.5, 2.0], correlation=0.0)
    marginal, conditional = (torch.tensor(line[1]) for line in densities.lines.values())
    torch.testing.assert_close(marginal, conditional)
    assert numbers.values["p(x | y) at this x"] == pytest.approx(numbers.values["p(x) at x = 0.50"])


def test_densities_integrate_to_one_and_levels_increase_from_the_mean() -> None:
    path, densities, _ = evaluate(point=[0.0, 1.0], correlation=-0.9)
    for x, density in densities.lines.values():
        assert float(torch.trapezoid(torch.tensor(density), torch.tensor(x))) == pytest.approx(1.0, abs=1e-3)
    assert float(path.levels.min()) == float(path.levels[40, 40]) == 0.0
    low, high = path.levels[60, 20], path.levels[60, 60]  # upper left, upper right
    assert low < high
