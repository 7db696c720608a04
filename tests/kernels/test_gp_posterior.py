"""The probe of the GP posterior: its plot and values."""

import pytest
import torch

from parnassus.kernels.probes.gp_posterior import FIRST, KERNELS, gp_posterior
from parnassus.widgets import Curves, Numbers, Trajectories, evaluate_probe, read_controls


def evaluate(**values: object) -> tuple[Trajectories, Curves, Numbers]:
    path, evidence, numbers = evaluate_probe(gp_posterior, None, read_controls(gp_posterior, None), values)
    assert isinstance(path, Trajectories)
    assert isinstance(evidence, Curves)
    assert isinstance(numbers, Numbers)
    return path, evidence, numbers


def height(path: Trajectories, x: float) -> float:
    mean = path.paths["mean"]
    return float(mean[(mean[:, 0] - x).abs().argmin(), 1])


@pytest.mark.parametrize("kind", range(len(KERNELS)))
def test_every_kernel_answers_with_any_number_of_targets(kind: int) -> None:
    for count in (0, 1, len(FIRST)):
        path, evidence, _ = evaluate(kind=kind, targets=FIRST[:count])
        assert bool(path.levels.isfinite().all())
        assert all(torch.tensor(y).isfinite().all() for _, y in evidence.lines.values())


def test_little_noise_draws_the_mean_through_the_target_and_much_noise_does_not() -> None:
    near = height(evaluate(targets=[[0.0, 2.0]], noise=1e-4)[0], 0.0)
    far = height(evaluate(targets=[[0.0, 2.0]], noise=1.0)[0], 0.0)
    assert near == pytest.approx(2.0, abs=0.02)
    assert far == pytest.approx(1.0, abs=0.02)  # 2 / (1 + σ²)


def test_a_target_on_the_band_of_the_others_is_that_many_deviations_off() -> None:
    far = [FIRST[0], [3.9, 2.0]]  # nothing is known there: N(0, 1)
    numbers = evaluate(targets=far, noise=1e-4, length=0.2)[2].values
    assert numbers["leave-one-out prediction of the last target"] == "0.00 ± 1.00"
    assert numbers["its deviation in standard deviations"] == pytest.approx(2.0, rel=1e-3)


def test_without_targets_the_bands_are_those_of_the_prior() -> None:
    path, evidence, numbers = evaluate(targets=[], noise=0.25)
    within = path.y[path.levels[:, 100] == 0]
    assert float(within.max()) == pytest.approx(2.0, abs=0.02)
    assert numbers.values == {"targets": 0.0}
    assert set(evidence.lines["ln p(t)"][1]) == {0.0}


def test_the_band_of_a_target_holds_that_of_the_curve() -> None:
    levels = evaluate(noise=0.5)[0].levels
    assert set(levels.unique().tolist()) == {0.0, 0.5, 1.0}  # in both, in the target's alone, in none
