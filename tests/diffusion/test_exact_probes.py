"""Probes without training: noise schedules, samplers and guidance."""

from typing import cast

import pytest
import torch

from parnassus.diffusion.probes.guidance import guided_sampling
from parnassus.diffusion.probes.samplers import compare_samplers
from parnassus.diffusion.probes.schedules import KINDS, SHOWN, noise_schedules
from parnassus.widgets import Answer, Bars, Curves, Images, Numbers, Trajectories, evaluate_probe, read_controls


def run_probe(probe: object, **values: object) -> list[Answer]:
    assert callable(probe)
    return list(evaluate_probe(probe, None, read_controls(probe, None), values))


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize(("steps", "strength"), [(10, 4.0), (1_000, 0.1), (200, 1.0)])
def test_snr_decreases_for_all_schedules(kind: int, steps: int, strength: float) -> None:
    images, levels, ratio, numbers = run_probe(noise_schedules, kind=kind, steps=steps, strength=strength)
    assert cast("Images", images).images.shape == (SHOWN, 1, 8, 8)
    (signal, level) = (torch.tensor(line[1]) for line in cast("Curves", levels).lines.values())
    torch.testing.assert_close(signal.square() + level.square(), torch.ones(steps))
    snr = torch.tensor(next(iter(cast("Curves", ratio).lines.values()))[1])
    assert bool((snr.diff() < 0).all())
    assert cast("Numbers", numbers).values["signal at the end, √ᾱ_T"] == pytest.approx(float(signal[-1]))


def test_linear_schedule_has_more_steps_of_low_snr_than_cosine_schedule() -> None:
    fractions = [
        cast("Numbers", run_probe(noise_schedules, kind=kind)[-1]).values["fraction of steps with SNR below 1/100"]
        for kind in (0, 1)
    ]
    assert cast("float", fractions[0]) > 3 * cast("float", fractions[1])


def test_deterministic_samplers_agree_only_with_many_calls() -> None:
    names = ["DDIM", "Heun", "DPM-Solver++", "DDPM"]
    accurate, coarse = (
        cast("Bars", run_probe(compare_samplers, start=[1.0, -0.5], calls=calls)[1]) for calls in (40, 3)
    )
    assert list(accurate.names) == names
    assert float(accurate.values[:3].max()) < 0.1
    assert float(accurate.values[1]) < float(accurate.values[0])
    assert float(coarse.values[:3].max()) > float(accurate.values[:3].max())
    path = cast("Trajectories", run_probe(compare_samplers, calls=9)[0])
    assert len(path.paths["DDIM"]) == 10
    assert len(path.paths["Heun"]) == 6
    assert all(torch.equal(states[0], path.paths["DDIM"][0]) for states in path.paths.values())


def test_scale_1_equals_weight_0() -> None:
    by_scale, by_weight = (run_probe(guided_sampling, convention=c, guidance=g) for c, g in ((0, 1.0), (1, 0.0)))
    for first, second in zip(
        cast("Trajectories", by_scale[0]).paths.values(),
        cast("Trajectories", by_weight[0]).paths.values(),
        strict=True,
    ):
        assert torch.equal(first, second)


def test_guidance_increases_accuracy_and_reduces_diversity() -> None:
    accuracies, stds = [], []
    for scale in (0.0, 1.0, 4.0):
        *_, bars, numbers = run_probe(guided_sampling, guidance=scale)
        accuracies.append(float(cast("Bars", bars).values[2]))
        stds.append(
            cast("float", cast("Numbers", numbers).values["standard deviation of the samples, relative to the class"])
        )
        assert float(cast("Bars", bars).values.sum()) == pytest.approx(1.0)
    assert abs(accuracies[0] - 1 / 3) < 0.12
    assert accuracies[0] < accuracies[1] < accuracies[2]
    assert accuracies[2] > 0.99
    assert stds[2] < 0.8 * stds[1] < stds[0]


def test_probes_keep_the_global_random_state() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    run_probe(compare_samplers)
    run_probe(guided_sampling)
    run_probe(noise_schedules)
    assert torch.equal(torch.rand(1), expected)
