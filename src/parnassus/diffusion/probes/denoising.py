"""Probes of trained models: denoising of images, and the sampling trajectory of a point (book ch. 13)."""

from typing import Annotated, Protocol, cast

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import Dataset, open_data, standardise_features
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.guidance import batched_classifier_free_guidance, clip_x0, record_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.samplers.ddim import ddim_path
from parnassus.diffusion.samplers.image_sampling import to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.train.trained import TrainedRun
from parnassus.widgets import (
    Animation,
    Answer,
    FloatSlider,
    IntSlider,
    Numbers,
    Plane,
    PointPicker,
    Select,
    Trajectories,
)

SAMPLES = 8  # shown side by side
TRAJECTORIES = 6  # from one start, if the sampler adds noise
LIMIT = 3.5  # half the side of the plane, in standard deviations of the data


class _Settings(Protocol):
    data: str


class _ImageSettings(_Settings, Protocol):
    image_size: int | None


def _model(trained: TrainedRun) -> DDPM:
    return cast("DDPM", trained.model)


def _classes(trained: TrainedRun) -> tuple[str, ...]:
    settings = cast("_ImageSettings", trained.experiment)
    return open_data(settings.data, size=settings.image_size).classes


def _steps(trained: TrainedRun) -> int:
    return min(30, len(trained.compute_once(_model).schedule))  # more steps are slower without visible improvement


@probe("diffusion_on_digits")
@torch.no_grad()
def denoising_animation(
    trained: TrainedRun,
    label: Annotated[int, Select("class", _classes)] = 3,
    guidance: Annotated[float, FloatSlider("guidance scale s", 0.0, 8.0)] = 2.0,
    steps: Annotated[int, IntSlider("DDIM steps", 1, _steps)] = 20,
    seed: Annotated[int, IntSlider("seed of the initial noise", 0, 999)] = 0,
) -> list[Answer]:
    """Denoising of eight samples, from noise to the selected class (book secs. 13.2, 13.3).

    Guidance scale 0 ignores the class, 1 is the conditional model, larger values give more typical and more similar
    samples. Find the step at which the digit becomes recognisable, and the smallest number of steps that suffices.
    """
    model = trained.compute_once(_model)
    labels = torch.full((SAMPLES,), label)
    guided = batched_classifier_free_guidance(model.denoiser, labels, guidance, null=model.classes)
    denoiser, predictions = record_x0(clip_x0(guided, model.schedule), model.schedule)
    grid = evenly_spaced_steps(len(model.schedule), steps)
    start = torch.randn(SAMPLES, *model.shape, generator=torch.Generator().manual_seed(seed))
    states = list(ddim_path(denoiser, model.schedule, start, grid=grid))
    captions = _captions(model.schedule, grid)
    return [
        Animation("State of the chain", to_pixels(torch.stack(states)), captions, about="x_t, from noise to an image."),
        Animation(
            "Predicted clean image",
            to_pixels(torch.stack([*predictions, states[-1]])),
            captions,
            about="The prediction x̂_0 at each step, blurred at high noise levels and sharp at low ones.",
        ),
    ]


def _captions(schedule: Schedule, grid: Tensor) -> list[str]:
    """Captions of the states in sampling order, and of the final sample."""
    level = (1 - schedule.alpha_bar[grid]).sqrt().flip(0).tolist()
    steps = (grid + 1).flip(0).tolist()
    return [
        *(f"t = {t} of {len(schedule)}, noise level {noise:.2f}" for t, noise in zip(steps, level, strict=True)),
        "sample",
    ]


def _points(trained: TrainedRun) -> Dataset:
    return standardise_features(open_data(cast("_Settings", trained.experiment).data))


def _max_steps(trained: TrainedRun) -> int:
    return min(100, len(trained.compute_once(_model).schedule))


def _plane(trained: TrainedRun) -> Plane:
    data = trained.compute_once(_points)
    return Plane((-LIMIT, LIMIT), (-LIMIT, LIMIT), data.train.x[:1_000], x_label="x₁", y_label="x₂")


def _density_grid(trained: TrainedRun) -> tuple[Tensor, Tensor]:
    """The axis of a grid over the plane and a kernel density estimate of the data on it."""
    points = trained.compute_once(_points).train.x[:1_000]
    kde = MixtureDenoiser(trained.compute_once(_model).schedule, points, torch.full((len(points),), 0.15))
    axis = torch.linspace(-LIMIT, LIMIT, 61)
    rows = torch.cartesian_prod(axis, axis).flip(1)  # the second coordinate changes from row to row
    first = torch.zeros(len(rows), dtype=torch.long)  # the first step, with hardly any noise
    return axis, kde.log_prob(rows, first).exp().view(len(axis), len(axis))


@probe("diffusion_on_moons")
@torch.no_grad()
def sampling_trajectory(
    trained: TrainedRun,
    start: Annotated[tuple[float, float], PointPicker("initial noise x_T", _plane)] = (1.0, 1.0),
    eta: Annotated[float, FloatSlider("stochasticity η", 0.0, 1.0)] = 0.0,
    steps: Annotated[int, IntSlider("steps", 1, _max_steps)] = 50,
) -> list[Answer]:
    """The sampling trajectory of a point under the trained model (book sec. 13.2.5).

    For η = 0 (DDIM) the sample is a function of the start: move it to find the border between the two moons. For η = 1
    (DDPM) the same start may lead to any point of the data.
    """
    model = trained.compute_once(_model)
    count = TRAJECTORIES if eta > 0 else 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the same noise while the start moves
        path = ddim_path(
            model.denoiser,
            model.schedule,
            torch.tensor([start]).expand(count, 2),
            grid=evenly_spaced_steps(len(model.schedule), steps),
            eta=eta,
        )
        states = torch.stack(list(path), 1)
    axis, density = trained.compute_once(_density_grid)
    trajectories = {"trajectory" if count == 1 else f"trajectory {index}": path for index, path in enumerate(states, 1)}
    nearest = torch.cdist(states[:, -1], trained.compute_once(_points).train.x).amin(1)
    numbers: dict[str, float | str] = {
        "largest distance of a sample to the nearest data point": float(nearest.max()),
        "largest distance between two samples": float(torch.cdist(states[:, -1], states[:, -1]).max()),
    }
    return [
        Trajectories(
            "From noise to data", trajectories, axis, axis, density, about="Level lines: density of the data."
        ),
        Numbers("Samples", numbers),
    ]
