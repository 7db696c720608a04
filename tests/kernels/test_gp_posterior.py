"""The probe of the posterior, asked from outside: what its picture and numbers must say."""

import pytest
import torch

from parnassus.kernels.probes.gp_posterior import FIRST, KERNELS, gp_posterior
from parnassus.touch import Curves, Numbers, Path, answer, controls_of


def asked(**values: object) -> tuple[Path, Curves, Numbers]:
    path, evidence, numbers = answer(gp_posterior, None, controls_of(gp_posterior, None), values)
    assert isinstance(path, Path)
    assert isinstance(evidence, Curves)
    assert isinstance(numbers, Numbers)
    return path, evidence, numbers


def height(path: Path, x: float) -> float:
    mean = path.places["mean"]
    return float(mean[(mean[:, 0] - x).abs().argmin(), 1])


@pytest.mark.parametrize("kind", range(len(KERNELS)))
def test_every_kernel_answers_with_any_number_of_targets(kind: int) -> None:
    for count in (0, 1, len(FIRST)):
        path, evidence, _ = asked(kind=kind, targets=FIRST[:count])
        assert bool(path.levels.isfinite().all())
        assert all(torch.tensor(y).isfinite().all() for _, y in evidence.lines.values())


def test_little_noise_draws_the_mean_through_the_target_and_much_noise_does_not() -> None:
    near = height(asked(targets=[[0.0, 2.0]], noise=1e-4)[0], 0.0)
    far = height(asked(targets=[[0.0, 2.0]], noise=1.0)[0], 0.0)
    assert near == pytest.approx(2.0, abs=0.02)
    assert far == pytest.approx(1.0, abs=0.02)  # 2 / (1 + σ²)


def test_a_target_on_the_band_of_the_others_is_that_many_deviations_off() -> None:
    far = [FIRST[0], [3.9, 2.0]]  # nothing is known there: N(0, 1)
    numbers = asked(targets=far, noise=1e-4, length=0.2)[2].values
    assert numbers["what the others say of the last"] == "0.00 ± 1.00"
    assert numbers["deviations from it to the last"] == pytest.approx(2.0, rel=1e-3)


def test_without_targets_the_bands_are_those_of_the_prior() -> None:
    path, evidence, numbers = asked(targets=[], noise=0.25)
    within = path.up[path.levels[:, 100] == 0]
    assert float(within.max()) == pytest.approx(2.0, abs=0.02)
    assert numbers.values == {"targets seen": 0.0}
    assert set(evidence.lines["ln p(t)"][1]) == {0.0}


def test_the_band_of_a_target_holds_that_of_the_curve() -> None:
    levels = asked(noise=0.5)[0].levels
    assert set(levels.unique().tolist()) == {0.0, 0.5, 1.0}  # in both, in the target's alone, in none
