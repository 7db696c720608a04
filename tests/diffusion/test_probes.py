"""Probes of trained diffusion models compared with the samplers."""

from collections.abc import Callable

import pytest
import torch

from parnassus.data import open_data, standardise_features
from parnassus.diffusion import DDPM, ddim, evenly_spaced_steps
from parnassus.diffusion.probes.denoising import denoising_animation, sampling_trajectory
from parnassus.diffusion.samplers.image_sampling import ddim_images, to_pixels
from parnassus.train.trained import TrainedRun
from parnassus.widgets import (
    Animation,
    Control,
    IntSlider,
    Numbers,
    Select,
    Trajectories,
    evaluate_probe,
    read_controls,
)


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("diffusion_on_digits")


@pytest.fixture(scope="module")
def model(trained: TrainedRun) -> DDPM:
    model = trained.model
    assert isinstance(model, DDPM)
    return model


@pytest.fixture(scope="module")
def controls(trained: TrainedRun) -> dict[str, Control]:
    return read_controls(denoising_animation, trained)


def run_animation(trained: TrainedRun, controls: dict[str, Control], **values: object) -> tuple[Animation, Animation]:
    states, predictions = evaluate_probe(denoising_animation, trained, controls, values)
    assert isinstance(states, Animation)
    assert isinstance(predictions, Animation)
    return states, predictions


def test_classes_and_steps_match_the_run(controls: dict[str, Control]) -> None:
    label, steps = controls["label"], controls["steps"]
    assert isinstance(label, Select)
    assert isinstance(steps, IntSlider)
    assert label.choices == tuple("0123456789")
    assert steps.high == 20  # all timesteps of the smoke profile


@pytest.mark.parametrize("guidance", [0.0, 1.0, 3.0])
def test_last_frame_matches_ddim_samples(
    guidance: float, trained: TrainedRun, model: DDPM, controls: dict[str, Control]
) -> None:
    states, predictions = run_animation(trained, controls, label=7, guidance=guidance, steps=10, seed=5)
    torch.manual_seed(5)
    images = to_pixels(ddim_images(model, torch.full((8,), 7), guidance_scale=guidance, steps=10))
    torch.testing.assert_close(states.frames[-1], images, atol=1e-5, rtol=0)
    torch.testing.assert_close(predictions.frames[-1], images, atol=1e-5, rtol=0)
    torch.testing.assert_close(predictions.frames[-2], images, atol=1e-5, rtol=0)  # the last prediction


def test_first_frame_is_the_initial_noise(trained: TrainedRun, model: DDPM, controls: dict[str, Control]) -> None:
    first, repeated, other = (run_animation(trained, controls, seed=seed)[0].frames for seed in (3, 3, 4))
    torch.manual_seed(3)
    torch.testing.assert_close(first[0], to_pixels(torch.randn(8, *model.shape)))
    assert torch.equal(first, repeated)
    assert not torch.equal(first, other)


def test_guidance_scale_0_ignores_the_class(trained: TrainedRun, controls: dict[str, Control]) -> None:
    unguided, guided = (
        [run_animation(trained, controls, guidance=guidance, label=label)[1].frames for label in (1, 8)]
        for guidance in (0, 8)
    )
    torch.testing.assert_close(unguided[0], unguided[1], atol=1e-5, rtol=0)
    assert float((guided[0] - guided[1]).abs().max()) > 1e-3


def test_captions_show_step_and_noise_level(trained: TrainedRun, model: DDPM, controls: dict[str, Control]) -> None:
    states, predictions = run_animation(trained, controls, steps=4)
    level = (1 - model.schedule.alpha_bar).sqrt().tolist()
    steps = (20, 15, 10, 5)
    assert list(states.captions) == [*(f"t = {t} of 20, noise level {level[t - 1]:.2f}" for t in steps), "sample"]
    assert predictions.captions == states.captions
    assert states.frames.shape == predictions.frames.shape == (5, 8, 1, 8, 8)


def test_animation_keeps_the_global_random_state(trained: TrainedRun, controls: dict[str, Control]) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    run_animation(trained, controls)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"label": 10}, "class must be between 0 and 9; got 10"),
        ({"guidance": 8.5}, "guidance scale s must be between 0 and 8; got 8.5"),
        ({"steps": 0}, "DDIM steps must be between 1 and 20; got 0"),
        ({"seed": 1.5}, "seed of the initial noise must be an integer; got 1.5"),
    ],
)
def test_invalid_values_raise_value_error(
    values: dict[str, object], message: str, trained: TrainedRun, controls: dict[str, Control]
) -> None:
    with pytest.raises(ValueError, match=message):
        run_animation(trained, controls, **values)


@pytest.fixture(scope="module")
def moons(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("diffusion_on_moons")


def run_trajectory(moons: TrainedRun, **values: object) -> tuple[Trajectories, Numbers]:
    path, numbers = evaluate_probe(sampling_trajectory, moons, read_controls(sampling_trajectory, moons), values)
    assert isinstance(path, Trajectories)
    assert isinstance(numbers, Numbers)
    return path, numbers


def test_trajectory_without_noise_matches_ddim(moons: TrainedRun) -> None:
    path, numbers = run_trajectory(moons, start=[-1.0, 0.5], steps=25)
    model = moons.model
    assert isinstance(model, DDPM)
    (states,) = path.paths.values()
    assert states[0].tolist() == [-1.0, 0.5]
    assert len(states) == 26
    with torch.no_grad():
        end = ddim(model.denoiser, model.schedule, torch.tensor([[-1.0, 0.5]]), grid=evenly_spaced_steps(50, 25))
    torch.testing.assert_close(states[-1:], end)
    nearest_distance, sample_distance = numbers.values.values()
    assert nearest_distance == pytest.approx(
        float(torch.cdist(end, standardise_features(open_data("moons")).train.x).min()), rel=1e-3
    )
    assert sample_distance == 0


def test_noise_gives_different_samples_for_the_same_start(moons: TrainedRun) -> None:
    path, numbers = run_trajectory(moons, eta=1)
    assert len(path.paths) == 6
    assert len({tuple(states[0].tolist()) for states in path.paths.values()}) == 1
    assert len({tuple(states[-1].tolist()) for states in path.paths.values()}) == 6
    distance = numbers.values["largest distance between two samples"]
    assert isinstance(distance, float)
    assert distance > 0.5
    repeated, _ = run_trajectory(moons, eta=1)
    assert all(torch.equal(states, repeated.paths[name]) for name, states in path.paths.items())


def test_level_lines_show_the_data_density(moons: TrainedRun) -> None:
    """The density integrates to 1, is high at the data and low in the corners."""
    path, _ = run_trajectory(moons)
    cell = float(path.x[1] - path.x[0]) * float(path.y[1] - path.y[0])
    assert float(path.levels.sum()) * cell == pytest.approx(1, abs=0.01)
    points = standardise_features(open_data("moons")).train.x[:200]
    column = (points[:, :1] - path.x).abs().argmin(1)
    row = (points[:, 1:] - path.y).abs().argmin(1)
    assert float(path.levels[row, column].min()) > 100 * float(path.levels[0, 0])
    assert float(path.levels[row, column].min()) > 10 * float(path.levels[column, row].min())  # rows correspond to x₂


def test_trajectory_keeps_the_global_random_state(moons: TrainedRun) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    run_trajectory(moons, eta=1)
    assert torch.equal(torch.rand(1), expected)
