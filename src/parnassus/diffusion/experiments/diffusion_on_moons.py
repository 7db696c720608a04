"""Diffusion learns points in the plane, and DDIM draws them in fewer steps (book secs. 13.2.4, 13.2.5)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import open_points, standardised
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import TimeMLP
from parnassus.diffusion.process import diffuse, forward_variance
from parnassus.diffusion.samplers import ddim, ddim_path, ddpm, even_grid, last_state, slerp
from parnassus.diffusion.schedules import linear_schedule
from parnassus.probability import energy_distance
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, descend, reported

covers = ("B13.2.4-6", "B13.2.4-7", "B13.2.4-9", "B13.2.5-2", "B13.2.5-3")
expected = {
    "ddpm_1000": at_most(0.01, "energy distance to the data after all steps of DDPM"),
    "ddim_50": at_most(0.01, "the same after 50 steps of DDIM"),
    "random_50": reported("the same after 50 steps of DDPM with the variance 1 − α_t"),
    "data_to_data": reported("the same between two halves of the data: less is luck"),
    "strays_50": at_most(0.05, "share of the DDIM samples further than 0.25 from any point of the data"),
    "consistency_50": at_most(0.15, "how far samples move, RMS, when 50 steps replace all"),
}
profiles = {"smoke": {"steps": 20, "width": 16, "chain": 50}}
COUNTS = (5, 10, 20, 50, 100, 200, 500, 1_000)


@dataclass(frozen=True)
class Experiment:
    data: str = "moons"  # points in the plane: moons, eight_gaussians, checkerboard, rings, spirals, or a file of yours
    steps: int = 4_000  # gradient steps
    batch: int = 256  # points a step
    width: int = 128  # hidden units of the denoiser
    chain: int = 1_000  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self) -> DDPM:
        scale = 1_000 / self.chain  # a shorter chain takes larger steps
        schedule = linear_schedule(self.chain, low=1e-4 * scale, high=0.02 * scale)
        return DDPM(TimeMLP(2, self.width), (2,), schedule=schedule)

    def __call__(self, run: Run) -> dict[str, float]:
        data = standardised(open_points(self.data)).to(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1)
        run.keep("warming", warming)

        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            run.log(step, loss=loss)

        points = torch.cat([data.train.x, data.test.x])
        real, others = points[torch.randperm(len(points), device=run.device)].chunk(2)
        start = torch.randn(len(real), 2, device=run.device)
        result = self.compare_samplers(run, model, real, start, floor=float(energy_distance(others, real)))
        show_chain(run, model, real, start)
        show_interpolation(run, model, real)
        return result

    @torch.no_grad()
    def compare_samplers(self, run: Run, model: DDPM, real: Tensor, start: Tensor, *, floor: float) -> dict[str, float]:
        """How far the samples of three samplers are from the data, for chains of any length; one network serves all."""
        schedule, denoiser = model.schedule, model.denoiser
        counts = [count for count in COUNTS if count < len(schedule)] + [len(schedule)]

        def widest(grid: Tensor) -> Tensor:
            return ddpm(
                lambda x, t: denoiser(x, grid.to(t.device)[t]), schedule.keep(grid), start, variance=forward_variance
            )

        samplers: dict[str, Callable[[Tensor], Tensor]] = {
            "DDIM, no noise": lambda grid: ddim(denoiser, schedule, start, grid=grid),
            "DDPM, variance Σ_q(t)": lambda grid: ddim(denoiser, schedule, start, grid=grid, eta=1.0),
            "DDPM, variance 1 − α_t": widest,
        }
        sets = {name: [draw(even_grid(len(schedule), count)) for count in counts] for name, draw in samplers.items()}
        far = {name: [float(energy_distance(x, real)) for x in drawn] for name, drawn in sets.items()}
        lines = {name: (counts, row) for name, row in {**far, "data against data": [floor] * len(counts)}.items()}
        figure = curves(lines, x_label="steps", y_label="energy distance to the data", log_x=True, log_y=True)
        run.figure(
            "quality", figure, "Distance to the data against the number of steps: one trained network, three samplers."
        )

        certain = sets["DDIM, no noise"]
        moved = [float((x - certain[-1]).square().sum(1).mean().sqrt()) for x in certain]
        figure = curves(
            {"": (counts[:-1], moved[:-1])}, x_label="steps", y_label="RMS distance", log_x=True, log_y=True
        )
        run.figure("consistency", figure, "The same noise through fewer DDIM steps: how far the samples move.")
        run.table(
            "steps", [{"steps": c, **{n: far[n][i] for n in far}, "moved": moved[i]} for i, c in enumerate(counts)]
        )

        fifty = counts.index(50) if 50 in counts else -1
        return {
            "ddpm_1000": far["DDPM, variance Σ_q(t)"][-1],
            "ddim_50": far["DDIM, no noise"][fifty],
            "random_50": far["DDPM, variance 1 − α_t"][fifty],
            "data_to_data": floor,
            "strays_50": float((torch.cdist(certain[fifty], real).amin(1) > 0.25).float().mean()),
            "consistency_50": moved[fifty],
        }


@dataclass(frozen=True)
class Sample:
    steps: int | None = None  # DDIM steps; 50 unless told, or all where there are fewer
    count: int = 2_000  # how many points

    def __call__(self, model: DDPM) -> Tensor:
        return last_state(self.path(model))

    def path(self, model: DDPM) -> Iterator[Tensor]:
        """Every state on the way from noise to the points."""
        chain = len(model.schedule)
        if self.steps is not None and not 1 <= self.steps <= chain:
            raise ValueError(f"steps must lie between 1 and {chain}, the length of the chain; got {self.steps}")
        if self.count < 1:
            raise ValueError(f"count must be at least 1; got {self.count}")
        start = torch.randn(self.count, *model.shape, device=next(model.parameters()).device)
        grid = even_grid(chain, min(50, chain) if self.steps is None else self.steps)
        yield from ddim_path(model.denoiser, model.schedule, start, grid=grid)


@torch.no_grad()
def show_chain(run: Run, model: DDPM, real: Tensor, start: Tensor) -> None:
    """Five moments of the chain forwards and backwards."""
    last = len(model.schedule) - 1
    moments = [0, last // 10, last // 4, last // 2, last]
    forward = [
        diffuse(model.schedule, real, torch.full((len(real),), t, device=run.device), torch.randn_like(real))
        for t in moments
    ]
    path = list(ddim_path(model.denoiser, model.schedule, start))  # path[i] is the state at step last − i
    backward = [path[-1], *(path[last - t] for t in moments[1:])]
    figure, axes = subplots(2, 5, size=(11, 4.8))
    for row, (clouds, colour) in enumerate(((forward, PALETTE[0]), (backward, PALETTE[1]))):
        for ax, cloud, t in zip(axes[row], clouds, moments, strict=True):
            points = cloud.cpu()
            ax.scatter(points[:, 0], points[:, 1], s=2, color=colour, linewidths=0, rasterized=True)
            ax.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), xticks=[], yticks=[], title=f"t = {t + 1}" if row == 0 else "")
    axes[0, 0].set_ylabel("data to noise")
    axes[1, 0].set_ylabel("noise to samples")
    run.figure("chain", figure, "Above: the data drown. Below, read from the right: DDIM's way back; far left its end.")


@torch.no_grad()
def show_interpolation(run: Run, model: DDPM, real: Tensor) -> None:
    """Great arcs between noises, and what DDIM makes of them."""
    torch.manual_seed(run.seed)
    ends = torch.randn(2, 4, 2).to(run.device)
    arcs = torch.stack([slerp(ends[0], ends[1], share) for share in torch.linspace(0, 1, 100).tolist()], 1)
    grid = even_grid(len(model.schedule), min(100, len(model.schedule)))
    decoded = ddim(model.denoiser, model.schedule, arcs.flatten(0, 1), grid=grid).reshape(arcs.shape)
    figure, axes = subplots(1, 2, size=(9.5, 4.4))
    cloud = real.cpu()
    axes[0, 1].scatter(cloud[:, 0], cloud[:, 1], s=2, color=INK, alpha=0.3, linewidths=0, rasterized=True)
    for ax, lines in zip(axes[0], (arcs.cpu(), decoded.cpu()), strict=True):
        for line, colour in zip(lines, PALETTE, strict=False):
            ax.scatter(line[:, 0], line[:, 1], s=8, color=colour, linewidths=0)
        ax.set_aspect("equal")
    axes[0, 0].set_title("arcs between noises x_T")
    axes[0, 1].set_title("their samples x_0, over the data")
    run.figure(
        "interpolation", figure, "A path through noise becomes a path along the data; it jumps only between parts."
    )
