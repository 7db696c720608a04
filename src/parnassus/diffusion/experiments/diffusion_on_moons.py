"""Diffusion of points in the plane; sample quality of DDPM and DDIM by number of steps (book secs. 13.2.4, 13.2.5)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import open_points, standardise_features
from parnassus.diffusion.chain.forward_process import diffuse, forward_variance
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import TimeMLP
from parnassus.diffusion.samplers.ddim import ddim, ddim_path
from parnassus.diffusion.samplers.ddpm import ddpm
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps, last_state
from parnassus.probability import energy_distance
from parnassus.probability.distributions.slerp import slerp
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.setting_types import PlaneData
from parnassus.train import Positive, Run, at_most, descend, no_band

covers = ("B13.2.4-6", "B13.2.4-7", "B13.2.4-9", "B13.2.5-2", "B13.2.5-3")
expected = {
    "ddpm_1000": at_most(0.01, "energy distance to the data with all steps of DDPM"),
    "ddim_50": at_most(0.01, "energy distance to the data with 50 steps of DDIM"),
    "forward_variance_50": no_band("energy distance to the data with 50 steps of DDPM and the variance 1 − α_t"),
    "energy_distance_of_data": no_band(
        "energy distance between two halves of the data: differences below this are within sampling noise"
    ),
    "outlier_fraction_50": at_most(0.05, "fraction of DDIM samples further than 0.25 from every data point"),
    "consistency_50": at_most(0.15, "RMS distance of samples from 50 and from all DDIM steps, same initial noise"),
}
profiles = {"smoke": {"steps": 20, "width": 16, "num_train_timesteps": 50}}
STEP_COUNTS = (5, 10, 20, 50, 100, 200, 500, 1_000)


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "moons"  # points in the plane: name of a data set, or path of a file
    steps: Positive[int] = 4_000  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step
    width: Positive[int] = 128  # hidden units of the denoiser
    num_train_timesteps: Positive[int] = 1_000  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps

    def model(self) -> DDPM:
        scale = 1_000 / self.num_train_timesteps  # a shorter chain takes larger steps
        schedule = linear_schedule(self.num_train_timesteps, low=1e-4 * scale, high=0.02 * scale)
        return DDPM(TimeMLP(2, self.width), (2,), schedule=schedule)

    def __call__(self, run: Run) -> dict[str, float]:
        data = standardise_features(open_points(self.data)).to(run.device)
        model, optimizer, scheduler = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1),
        )

        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            scheduler.step()
            run.log(step, loss=loss)

        points = torch.cat([data.train.x, data.test.x])
        real, others = points[torch.randperm(len(points), device=run.device)].chunk(2)
        start = torch.randn(len(real), 2, device=run.device)
        data_distance = float(energy_distance(others, real))
        result = self.compare_samplers(run, model, real, start, data_distance=data_distance)
        plot_forward_and_reverse(run, model, real, start)
        plot_interpolation(run, model, real)
        return result

    @torch.no_grad()
    def compare_samplers(
        self, run: Run, model: DDPM, real: Tensor, start: Tensor, *, data_distance: float
    ) -> dict[str, float]:
        """Energy distance of three samplers to the data against the number of steps, with one network."""
        schedule, denoiser = model.schedule, model.denoiser
        counts = [count for count in STEP_COUNTS if count < len(schedule)] + [len(schedule)]

        def ddpm_with_forward_variance(grid: Tensor) -> Tensor:
            return ddpm(
                lambda x, t: denoiser(x, grid.to(t.device)[t]), schedule.respace(grid), start, variance=forward_variance
            )

        samplers: dict[str, Callable[[Tensor], Tensor]] = {
            "DDIM, η = 0": lambda grid: ddim(denoiser, schedule, start, grid=grid),
            "DDPM, variance Σ_q(t)": lambda grid: ddim(denoiser, schedule, start, grid=grid, eta=1.0),
            "DDPM, variance 1 − α_t": ddpm_with_forward_variance,
        }
        sets = {
            name: [sampler(evenly_spaced_steps(len(schedule), count)) for count in counts]
            for name, sampler in samplers.items()
        }
        distances = {name: [float(energy_distance(x, real)) for x in samples] for name, samples in sets.items()}
        rows = {**distances, "two halves of the data": [data_distance] * len(counts)}
        lines = {name: (counts, row) for name, row in rows.items()}
        figure = curves(lines, x_label="steps", y_label="energy distance to the data", log_x=True, log_y=True)
        run.figure(
            "quality by number of steps",
            figure,
            "Energy distance of samples to the data against the number of steps, for three samplers with one network.",
        )

        ddim_sets = sets["DDIM, η = 0"]
        deviations = [float((x - ddim_sets[-1]).square().sum(1).mean().sqrt()) for x in ddim_sets]
        figure = curves(
            {"": (counts[:-1], deviations[:-1])}, x_label="steps", y_label="RMS distance", log_x=True, log_y=True
        )
        run.figure(
            "consistency",
            figure,
            "RMS distance between DDIM samples with fewer steps and with all steps, from the same initial noise.",
        )
        run.table(
            "energy distance by number of steps",
            [
                {
                    "steps": count,
                    **{name: row[i] for name, row in distances.items()},
                    "DDIM, RMS distance": deviations[i],
                }
                for i, count in enumerate(counts)
            ],
        )

        fifty = counts.index(50) if 50 in counts else -1
        return {
            "ddpm_1000": distances["DDPM, variance Σ_q(t)"][-1],
            "ddim_50": distances["DDIM, η = 0"][fifty],
            "forward_variance_50": distances["DDPM, variance 1 − α_t"][fifty],
            "energy_distance_of_data": data_distance,
            "outlier_fraction_50": float((torch.cdist(ddim_sets[fifty], real).amin(1) > 0.25).float().mean()),
            "consistency_50": deviations[fifty],
        }


@dataclass(frozen=True)
class Sample:
    num_inference_steps: Positive[int] | None = None  # DDIM steps; by default 50, or the whole chain if it is shorter
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: DDPM) -> Tensor:
        return last_state(self.path(model))

    def path(self, model: DDPM) -> Iterator[Tensor]:
        """Every state from noise to the points."""
        timesteps = len(model.schedule)
        if self.num_inference_steps is not None and self.num_inference_steps > timesteps:
            raise ValueError(
                f"num_inference_steps must be between 1 and {timesteps}, the length of the chain; "
                f"got {self.num_inference_steps}"
            )
        start = torch.randn(self.num_samples, *model.shape, device=next(model.parameters()).device)
        grid = evenly_spaced_steps(
            timesteps, min(50, timesteps) if self.num_inference_steps is None else self.num_inference_steps
        )
        yield from ddim_path(model.denoiser, model.schedule, start, grid=grid)


@torch.no_grad()
def plot_forward_and_reverse(run: Run, model: DDPM, real: Tensor, start: Tensor) -> None:
    """Five time steps of the forward and the reverse process."""
    last = len(model.schedule) - 1
    times = [0, last // 10, last // 4, last // 2, last]
    forward = [
        diffuse(model.schedule, real, torch.full((len(real),), t, device=run.device), torch.randn_like(real))
        for t in times
    ]
    path = list(ddim_path(model.denoiser, model.schedule, start))  # path[i] is the state at step last − i
    reverse = [path[-1], *(path[last - t] for t in times[1:])]
    figure, axes = subplots(2, 5, size=(11, 4.8))
    for row, (clouds, colour) in enumerate(((forward, PALETTE[0]), (reverse, PALETTE[1]))):
        for ax, cloud, t in zip(axes[row], clouds, times, strict=True):
            points = cloud.cpu()
            ax.scatter(points[:, 0], points[:, 1], s=2, color=colour, linewidths=0, rasterized=True)
            ax.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), xticks=[], yticks=[], title=f"t = {t + 1}" if row == 0 else "")
    axes[0, 0].set_ylabel("forward")
    axes[1, 0].set_ylabel("reverse")
    run.figure(
        "forward process and sampling",
        figure,
        "The forward process (above) and DDIM sampling (below, from right to left).",
    )


@torch.no_grad()
def plot_interpolation(run: Run, model: DDPM, real: Tensor) -> None:
    """Spherical interpolations of the initial noise, and their DDIM samples."""
    torch.manual_seed(run.seed)
    ends = torch.randn(2, 4, 2).to(run.device)
    arcs = torch.stack([slerp(ends[0], ends[1], fraction) for fraction in torch.linspace(0, 1, 100).tolist()], 1)
    grid = evenly_spaced_steps(len(model.schedule), min(100, len(model.schedule)))
    decoded = ddim(model.denoiser, model.schedule, arcs.flatten(0, 1), grid=grid).reshape(arcs.shape)
    figure, axes = subplots(1, 2, size=(9.5, 4.4))
    cloud = real.cpu()
    axes[0, 1].scatter(cloud[:, 0], cloud[:, 1], s=2, color=INK, alpha=0.3, linewidths=0, rasterized=True)
    for ax, lines in zip(axes[0], (arcs.cpu(), decoded.cpu()), strict=True):
        for line, colour in zip(lines, PALETTE, strict=False):
            ax.scatter(line[:, 0], line[:, 1], s=8, color=colour, linewidths=0)
        ax.set_aspect("equal")
    axes[0, 0].set_title("interpolations of x_T")
    axes[0, 1].set_title("samples x_0, over the data")
    run.figure(
        "interpolation",
        figure,
        "Spherical interpolations of the initial noise and their DDIM samples, which follow the data and jump only "
        "between its components.",
    )
