"""Things to touch: noise that turns into digits, and the way of one point out of the noise (book ch. 13)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, open_data, standardised
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.experiments import diffusion_on_digits, diffusion_on_moons
from parnassus.diffusion.experiments.diffusion_on_digits import visible
from parnassus.diffusion.guidance import clipped, guided_at_once, watched
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.samplers import ddim_path, even_grid
from parnassus.diffusion.schedules import Schedule
from parnassus.touch import Answer, Film, Numbers, Path, Pick, Plane, Point, Real, Whole
from parnassus.train.trained import Trained

SAMPLES = 8  # drawn side by side
WAYS = 6  # of one point, when the sampler adds noise
REACH = 3.5  # of the plane, in standard deviations of the data


def _model(trained: Trained) -> DDPM:
    return cast("DDPM", trained.model)


def _classes(trained: Trained) -> tuple[str, ...]:
    return open_data(cast("diffusion_on_digits.Experiment", trained.experiment).data).classes


def _steps(trained: Trained) -> int:
    return min(30, len(trained.once(_model).schedule))  # more looks no better and keeps the person waiting


@probe("diffusion_on_digits")
@torch.no_grad()
def watch_the_denoising(
    trained: Trained,
    kind: Annotated[int, Pick("class", _classes)] = 3,
    guidance: Annotated[float, Real("guidance scale s", 0.0, 8.0)] = 2.0,
    steps: Annotated[int, Whole("DDIM steps", 1, _steps)] = 20,
    seed: Annotated[int, Whole("noise to start from", 0, 999)] = 0,
) -> list[Answer]:
    """Eight samples on their way from noise to the class you ask for (book secs. 13.2, 13.3).

    Guidance 0 ignores the class, 1 takes the model at its word, more makes the samples more typical and more alike.
    The digit is there early: find the step at which you can name it. Then see with how few steps it still works.
    """
    model = trained.once(_model)
    label = torch.full((SAMPLES,), kind)
    guide = guided_at_once(model.denoiser, label, guidance, null=model.classes)
    denoiser, guesses = watched(clipped(guide, model.schedule), model.schedule)
    grid = even_grid(len(model.schedule), steps)
    start = torch.randn(SAMPLES, *model.shape, generator=torch.Generator().manual_seed(seed))
    states = list(ddim_path(denoiser, model.schedule, start, grid=grid))
    captions = _moments(model.schedule, grid)
    return [
        Film("From noise to an image", visible(torch.stack(states)), captions, about="The state x_t of the chain."),
        Film(
            "What the model expects to come out",
            visible(torch.stack([*guesses, states[-1]])),
            captions,
            about="Its guess of the clean image from each state: wild from pure noise, then blurred, then sharp.",
        ),
    ]


def _moments(schedule: Schedule, grid: Tensor) -> list[str]:
    """A caption for the state at each kept step, last step first, and one for what was drawn."""
    level = (1 - schedule.alpha_bar[grid]).sqrt().flip(0).tolist()
    steps = (grid + 1).flip(0).tolist()
    return [
        *(f"t = {t} of {len(schedule)}, noise level {noise:.2f}" for t, noise in zip(steps, level, strict=True)),
        "drawn",
    ]


def _points(trained: Trained) -> Dataset:
    return standardised(open_data(cast("diffusion_on_moons.Experiment", trained.experiment).data))


def _many_steps(trained: Trained) -> int:
    return min(100, len(trained.once(_model).schedule))


def _plane(trained: Trained) -> Plane:
    data = trained.once(_points)
    return Plane((-REACH, REACH), (-REACH, REACH), data.train.x[:1_000], across_name="x₁", up_name="x₂")


def _ground(trained: Trained) -> tuple[Tensor, Tensor]:
    """The axis of a raster over the plane and the density of the data on it, each point blurred a little."""
    points = trained.once(_points).train.x[:1_000]
    oracle = MixtureOracle(trained.once(_model).schedule, points, torch.full((len(points),), 0.15))
    axis = torch.linspace(-REACH, REACH, 61)
    rows = torch.cartesian_prod(axis, axis).flip(1)  # the second coordinate changes from row to row
    first = torch.zeros(len(rows), dtype=torch.long)  # the chain's first step, where hardly any noise was added
    return axis, oracle.log_prob(rows, first).exp().view(len(axis), len(axis))


@probe("diffusion_on_moons")
@torch.no_grad()
def follow_the_noise(
    trained: Trained,
    start: Annotated[tuple[float, float], Point("the noise to start from", _plane)] = (1.0, 1.0),
    eta: Annotated[float, Real("noise on the way, η", 0.0, 1.0)] = 0.0,
    steps: Annotated[int, Whole("steps", 1, _many_steps)] = 50,
) -> list[Answer]:
    """Where a point of pure noise is led by the trained chain (book sec. 13.2.5).

    Without noise on the way (η = 0) a start has one end: move it slowly and find the border where the end jumps from
    one moon to the other. With η = 1 the same start may end anywhere on the data.
    """
    model = trained.once(_model)
    ways = WAYS if eta > 0 else 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the same noise while the start moves
        path = ddim_path(
            model.denoiser,
            model.schedule,
            torch.tensor([start]).expand(ways, 2),
            grid=even_grid(len(model.schedule), steps),
            eta=eta,
        )
        states = torch.stack(list(path), 1)
    axis, density = trained.once(_ground)
    places = {"its way" if ways == 1 else f"way {number}": way for number, way in enumerate(states, 1)}
    far = torch.cdist(states[:, -1], trained.once(_points).train.x).amin(1)
    numbers: dict[str, float | str] = {
        "distance of the end to the nearest point of the data": float(far.max()),
        "the furthest two ends are apart": float(torch.cdist(states[:, -1], states[:, -1]).max()),
    }
    return [
        Path("From noise to data", places, axis, axis, density, about="Level lines: where the data lie densely."),
        Numbers("Where it ends", numbers, about="Of several ends, the furthest."),
    ]
