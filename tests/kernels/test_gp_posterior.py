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


def mean_at(path: Trajectories, x: float) -> float:
    mean = path.paths["mean"]
    return float(mean[(mean[:, 0] - x).abs().argmin(), 1])


@pytest.mark.parametrize("kind", range(len(KERNELS)))
def test_every_kernel_accepts_any_number_of_targets(kind: int) -> None:
    for count in (0, 1, len(FIRST)):
        path, evidence, _ = evaluate(kind=kind, targets=FIRST[:count])
        assert bool(path.levels.isfinite().all())
        assert all(torch.tensor(y).isfinite().all() for _, y in evidence.lines.values())


def test_mean_interpolates_for_small_noise_only() -> None:
    near = mean_at(evaluate(targets=[[0.0, 2.0]], noise=1e-4)[0], 0.0)
    far = mean_at(evaluate(targets=[[0.0, 2.0]], noise=1.0)[0], 0.0)
    assert near == pytest.approx(2.0, abs=0.02)
    assert far == pytest.approx(1.0, abs=0.02)  # 2 / (1 + σ²)


def test_leave_one_out_deviation_of_an_isolated_target() -> None:
    targets = [FIRST[0], [3.9, 2.0]]  # far from the other target: N(0, 1)
    numbers = evaluate(targets=targets, noise=1e-4, length=0.2)[2].values
    assert numbers["leave-one-out prediction of the last target"] == "0.00 ± 1.00"
    assert numbers["its deviation in standard deviations"] == pytest.approx(2.0, rel=1e-3)


def test_bands_without_targets_are_those_of_the_prior() -> None:
    path, evidence, numbers = evaluate(targets=[], noise=0.25)
    within = path.y[path.levels[:, 100] == 0]
    assert float(within.max()) == pytest.approx(2.0, abs=0.02)
    assert numbers.values == {"targets": 0.0}
    assert set(evidence.lines["ln p(t)"][1]) == {0.0}


def test_target_band_contains_the_function_band() -> None:
    levels = evaluate(noise=0.5)[0].levels
    assert set(levels.unique().tolist()) == {0.0, 0.5, 1.0}  # both bands, target band only, neither
