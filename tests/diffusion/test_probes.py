"""Probes of trained models show the states of the samplers."""

from collections.abc import Callable

import pytest
import torch

from parnassus.data import open_data, standardise_features
from parnassus.diffusion import DDPM, ddim, even_grid
from parnassus.diffusion.probes.denoising import denoising_animation, sampling_trajectory
from parnassus.diffusion.samplers.image_sampling import ddim_images, to_pixels
from parnassus.train.trained import Trained
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
def trained(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("diffusion_on_digits")


@pytest.fixture(scope="module")
def model(trained: Trained) -> DDPM:
    model = trained.model
    assert isinstance(model, DDPM)
    return model


@pytest.fixture(scope="module")
def controls(trained: Trained) -> dict[str, Control]:
    return read_controls(denoising_animation, trained)


def animations(trained: Trained, controls: dict[str, Control], **values: object) -> tuple[Animation, Animation]:
    states, predictions = evaluate_probe(denoising_animation, trained, controls, values)
    assert isinstance(states, Animation)
    assert isinstance(predictions, Animation)
    return states, predictions


def test_the_classes_and_the_steps_are_those_of_the_run(controls: dict[str, Control]) -> None:
    label, steps = controls["label"], controls["steps"]
    assert isinstance(label, Select)
    assert isinstance(steps, IntSlider)
    assert label.choices == tuple("0123456789")
    assert steps.high == 20  # all timesteps of the smoke profile


@pytest.mark.parametrize("guidance", [0.0, 1.0, 3.0])
def test_the_last_frame_is_the_ddim_sample_of_the_seed(
    guidance: float, trained: Trained, model: DDPM, controls: dict[str, Control]
) -> None:
    states, predictions = animations(trained, controls, label=7, guidance=guidance, steps=10, seed=5)
    torch.manual_seed(5)
    images = to_pixels(ddim_images(model, torch.full((8,), 7), guidance_scale=guidance, steps=10))
    torch.testing.assert_close(states.frames[-1], images, atol=1e-5, rtol=0)
    torch.testing.assert_close(predictions.frames[-1], images, atol=1e-5, rtol=0)
    torch.testing.assert_close(predictions.frames[-2], images, atol=1e-5, rtol=0)  # the last prediction


def test_the_first_frame_is_the_noise_of_the_seed(trained: Trained, model: DDPM, controls: dict[str, Control]) -> None:
    first, again, other = (animations(trained, controls, seed=seed)[0].frames for seed in (3, 3, 4))
    torch.manual_seed(3)
    torch.testing.assert_close(first[0], to_pixels(torch.randn(8, *model.shape)))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_guidance_scale_0_ignores_the_class(trained: Trained, controls: dict[str, Control]) -> None:
    unguided, guided = (
        [animations(trained, controls, guidance=guidance, label=label)[1].frames for label in (1, 8)]
        for guidance in (0, 8)
    )
    torch.testing.assert_close(unguided[0], unguided[1], atol=1e-5, rtol=0)
    assert float((guided[0] - guided[1]).abs().max()) > 1e-3


def test_captions_name_the_step_and_its_noise(trained: Trained, model: DDPM, controls: dict[str, Control]) -> None:
    states, predictions = animations(trained, controls, steps=4)
    level = (1 - model.schedule.alpha_bar).sqrt().tolist()
    steps = (20, 15, 10, 5)
    assert list(states.captions) == [*(f"t = {t} of 20, noise level {level[t - 1]:.2f}" for t in steps), "sample"]
    assert predictions.captions == states.captions
    assert states.frames.shape == predictions.frames.shape == (5, 8, 1, 8, 8)


def test_the_animation_keeps_the_global_random_state(trained: Trained, controls: dict[str, Control]) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    animations(trained, controls)
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
def test_invalid_values_raise_value_errors(
    values: dict[str, object], message: str, trained: Trained, controls: dict[str, Control]
) -> None:
    with pytest.raises(ValueError, match=message):
        animations(trained, controls, **values)


@pytest.fixture(scope="module")
def moons(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("diffusion_on_moons")


def trajectory_of(moons: Trained, **values: object) -> tuple[Trajectories, Numbers]:
    path, numbers = evaluate_probe(sampling_trajectory, moons, read_controls(sampling_trajectory, moons), values)
    assert isinstance(path, Trajectories)
    assert isinstance(numbers, Numbers)
    return path, numbers


def test_without_noise_the_trajectory_is_that_of_ddim(moons: Trained) -> None:
    path, numbers = trajectory_of(moons, start=[-1.0, 0.5], steps=25)
    model = moons.model
    assert isinstance(model, DDPM)
    (states,) = path.paths.values()
    assert states[0].tolist() == [-1.0, 0.5]
    assert len(states) == 26
    with torch.no_grad():
        end = ddim(model.denoiser, model.schedule, torch.tensor([[-1.0, 0.5]]), grid=even_grid(50, 25))
    torch.testing.assert_close(states[-1:], end)
    nearest_distance, sample_distance = numbers.values.values()
    assert nearest_distance == pytest.approx(
        float(torch.cdist(end, standardise_features(open_data("moons")).train.x).min()), rel=1e-3
    )
    assert sample_distance == 0


def test_with_noise_one_start_gives_different_samples(moons: Trained) -> None:
    path, numbers = trajectory_of(moons, eta=1)
    assert len(path.paths) == 6
    assert len({tuple(states[0].tolist()) for states in path.paths.values()}) == 1
    assert len({tuple(states[-1].tolist()) for states in path.paths.values()}) == 6
    distance = numbers.values["largest distance between two samples"]
    assert isinstance(distance, float)
    assert distance > 0.5
    again, _ = trajectory_of(moons, eta=1)
    assert all(torch.equal(states, again.paths[name]) for name, states in path.paths.items())


def test_the_level_lines_are_the_density_of_the_data(moons: Trained) -> None:
    """It integrates to 1 over the plane and is high at the data and low in the corners."""
    path, _ = trajectory_of(moons)
    cell = float(path.x[1] - path.x[0]) * float(path.y[1] - path.y[0])
    assert float(path.levels.sum()) * cell == pytest.approx(1, abs=0.01)
    points = standardise_features(open_data("moons")).train.x[:200]
    column = (points[:, :1] - path.x).abs().argmin(1)
    row = (points[:, 1:] - path.y).abs().argmin(1)
    assert float(path.levels[row, column].min()) > 100 * float(path.levels[0, 0])
    assert float(path.levels[row, column].min()) > 10 * float(path.levels[column, row].min())  # rows are x₂


def test_the_trajectory_keeps_the_global_random_state(moons: Trained) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    trajectory_of(moons, eta=1)
    assert torch.equal(torch.rand(1), expected)
