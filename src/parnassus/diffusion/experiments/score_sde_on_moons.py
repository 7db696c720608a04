"""Score-based SDEs (VP, sub-VP, VE) on moons: reverse SDE, probability flow, likelihood (book secs. 13.1, 13.2.8)."""

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import SampledPoints, Split, open_points, standardise_features
from parnassus.data.built_in.densities import moons_entropy, moons_log_prob
from parnassus.data.loading import TOYS
from parnassus.data.seeds import derive_seed
from parnassus.diffusion.continuous.ode_solvers import heun
from parnassus.diffusion.continuous.probability_flow import probability_flow_field, solve_probability_flow
from parnassus.diffusion.continuous.reverse_sde import reverse_sde_path
from parnassus.diffusion.continuous.sde import (
    NoisingSDE,
    sub_variance_preserving,
    time_at_noise_ratio,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.models.score_sde import ScoreSDE
from parnassus.diffusion.networks.score_networks import NoiseLevelMLP
from parnassus.optim import Adam
from parnassus.probability import energy_distance
from parnassus.report import PALETTE, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.setting_types import PlaneData
from parnassus.train import Positive, Run, at_most, between, descend, no_band
from parnassus.train.run import BatchSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-25", "C-27", "B13.2.8-3", "B13.2.5-1")
expected = {
    "gap_vp": at_most(0.08, "true log-density minus log-density of the flow on test points, in nats, VP"),
    "gap_sub_vp": at_most(0.08, "true log-density minus log-density of the flow on test points, in nats, sub-VP"),
    "gap_ve": at_most(0.08, "true log-density minus log-density of the flow on test points, in nats, VE"),
    "reverse_vp": at_most(0.01, "energy distance between samples of the reverse SDE and test points, VP"),
    "reverse_sub_vp": at_most(0.01, "energy distance between samples of the reverse SDE and test points, sub-VP"),
    "reverse_ve": at_most(0.01, "energy distance between samples of the reverse SDE and test points, VE"),
    "flow_vp": at_most(0.01, "energy distance between samples of the probability flow and test points, VP"),
    "flow_sub_vp": at_most(0.01, "energy distance between samples of the probability flow and test points, sub-VP"),
    "flow_ve": at_most(0.01, "energy distance between samples of the probability flow and test points, VE"),
    "energy_distance_of_data": no_band(
        "energy distance between two sets of data points: differences below this are within sampling noise"
    ),
    "nll_vp": no_band("mean negative log-likelihood of test points under the VP flow, in nats"),
    "entropy": between(0.285, 0.295, "entropy of the data, the lower bound of the negative log-likelihood"),
    "round_trip": at_most(0.01, "RMS reconstruction error of test points after the flow to noise and back"),
}
profiles = {
    "smoke": {"steps": 20, "width": 16, "num_test": 50, "num_samples": 100, "num_inference_steps": 20, "grid_size": 8},
    "gpu": {
        "steps": 30_000, "batch_size": 4_096, "width": 256, "num_test": 10_000, "num_samples": 10_000,
        "num_inference_steps": 1_000, "grid_size": 120,
    },
}  # fmt: skip

SDES: dict[str, NoisingSDE] = {
    "vp": variance_preserving(),
    "sub_vp": sub_variance_preserving(),
    "ve": variance_exploding(0.01, 20.0),
}
NAMES = {"vp": "VP", "sub_vp": "sub-VP", "ve": "VE"}
GREY = PALETTE[7]  # colour of the data; rasterised points cannot switch between light and dark mode
VIEW = (-1.6, 2.6, -1.15, 1.65)  # left, right, bottom and top of the figures of the moons


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "moons"  # points in the plane: name of a data set, or path of a file
    steps: Positive[int] = 5_000  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step, new at each step for generated data
    width: Positive[int] = 96  # hidden units of the score network
    learning_rate: Positive[float] = 4e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_test: Positive[int] = 500  # test points on which the density is evaluated
    num_samples: Positive[int] = 1_500  # number of samples per sampler
    num_inference_steps: Positive[int] = 200  # steps of the reverse SDE
    grid_size: Positive[int] = 40  # grid points per axis of the density figure

    def model(self) -> ScoreSDE:
        """Trained at noise-to-signal ratios from 0.01 to 160, log-uniformly, which covers all three SDEs."""
        return ScoreSDE(NoiseLevelMLP(2, self.width, max_level=10.5), (2,), variance_exploding(0.01, 160.0))

    def __call__(self, run: Run) -> dict[str, float]:
        batches, test = self.load_points(run)
        model, optimizer, scheduler = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, loss in descend(run, model, optimizer, batches):
            scheduler.step()
            run.log(step, loss=loss)

        run.figure(
            "SDEs",
            plot_sdes(),
            "Signal scale a(t), noise scale b(t) and their ratio. The score of x_t / a depends on the ratio only, so "
            "one network conditioned on the ratio serves all three SDEs.",
        )
        result = self.evaluate_samples(run, model, test.x)
        plot_trajectories(run, model, test.x)
        result |= self.evaluate_density(run, model, test.x[: self.num_test])
        return result

    def load_points(self, run: Run) -> tuple[BatchSource[Tensor], Split]:
        """Training batches, with new points at every step for generated data, and test points."""
        if self.data in TOYS:
            test = TOYS[self.data](2 * self.num_samples, seed=derive_seed(run.seed, -1)).to(run.device)
            batches: BatchSource[Tensor] = SampledPoints(TOYS[self.data], self.batch_size, self.steps, run.device)
        else:
            data = standardise_features(open_points(self.data)).to(run.device)
            batches, test = data.train.batches(self.batch_size, self.steps), data.test
        return batches, test

    @torch.no_grad()
    def evaluate_samples(self, run: Run, model: ScoreSDE, test: Tensor) -> dict[str, float]:
        """Energy distances of samples of the reverse SDE and of the probability flow to test points, for each SDE."""
        real, others = test.chunk(2)
        samples: dict[str, Tensor] = {}
        for name, sde in SDES.items():
            model_of_sde = model.with_sde(sde)
            samples[f"reverse_{name}"] = model_of_sde.sample(self.num_samples, steps=self.num_inference_steps)
            samples[f"flow_{name}"] = model_of_sde.sample_flow(
                self.num_samples, steps=max(1, self.num_inference_steps // 4), solver=heun
            )
        distances = {name: float(energy_distance(x, real)) for name, x in samples.items()}
        run.figure(
            "samples",
            plot_samples(real.cpu(), {name: x.cpu() for name, x in samples.items()}),
            f"Samples of one network: the reverse SDE in {self.num_inference_steps} steps (above) and the probability "
            f"flow in {max(1, self.num_inference_steps // 4)} steps of Heun's method (below).",
        )
        return {**distances, "energy_distance_of_data": float(energy_distance(real, others))}

    @torch.no_grad()
    def evaluate_density(self, run: Run, model: ScoreSDE, x: Tensor) -> dict[str, float]:
        """The log-density of the probability flow, and its gap to the true one where that is known."""
        log_probs = {name: model.with_sde(sde).log_prob(x, steps=40) for name, sde in SDES.items()}
        vp = model.with_sde(SDES["vp"])
        times = vp.times(60)
        noise = solve_probability_flow(vp.sde, vp.score, x, times.flip(0))
        reconstruction = solve_probability_flow(vp.sde, vp.score, noise, times)
        result = {
            "nll_vp": -float(log_probs["vp"].mean()),
            "round_trip": float((reconstruction - x).square().sum(1).mean().sqrt()),
        }
        if self.data != "moons":  # the true density is known for moons only
            return {**result, **{f"gap_{name}": nan for name in log_probs}, "entropy": nan}
        truth = moons_log_prob(x)
        gaps = {name: float((truth - log_prob).mean()) for name, log_prob in log_probs.items()}
        plot_density(run, vp, self.grid_size)
        run.table(
            "density",
            [{"SDE": NAMES[name], "KL divergence, nats": gap} for name, gap in gaps.items()],
            caption="Mean difference between the true log-density and that of the flow on test points.",
        )
        return {**result, **{f"gap_{name}": gap for name, gap in gaps.items()}, "entropy": moons_entropy()}


@dataclass(frozen=True)
class Sample:
    sde: Literal["vp", "sub_vp", "ve"] = "vp"  # variance-preserving, sub-VP or variance-exploding SDE
    sampler: Literal["reverse_sde", "probability_flow"] = "probability_flow"  # stochastic or deterministic sampling
    num_inference_steps: Positive[int] = 100  # sampling steps
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: ScoreSDE) -> Tensor:
        model = model.with_sde(SDES[self.sde])
        if self.sampler == "probability_flow":
            return model.sample_flow(self.num_samples, steps=self.num_inference_steps, solver=heun)
        return model.sample(self.num_samples, steps=self.num_inference_steps)


def plot_sdes() -> "Figure":
    figure, axes = subplots(1, 3, size=(11.0, 3.2))
    t = torch.linspace(0.005, 1, 200, dtype=torch.float64)
    for (name, sde), colour in zip(SDES.items(), PALETTE, strict=False):
        for ax, values in zip(axes[0], (sde.scale(t), sde.std(t), sde.std(t) / sde.scale(t)), strict=True):
            ax.plot(t, values, color=colour, label=NAMES[name])
    for ax, title in zip(axes[0], ("signal a(t)", "noise b(t)", "noise-to-signal ratio b / a"), strict=True):
        ax.set(title=title, xlabel="t")
    axes[0, 1].set_yscale("log")
    axes[0, 2].set_yscale("log")
    axes[0, 0].legend()
    return figure


def plot_samples(real: Tensor, samples: dict[str, Tensor]) -> "Figure":
    """Data at the left; a column for each SDE, the reverse SDE above and the probability flow below."""
    figure, axes = subplots(2, 4, size=(11.5, 4.6))
    cells = [(axes[row, 0], real, GREY, "data") for row in range(2)]
    for column, name in enumerate(SDES, 1):
        cells += [(axes[0, column], samples[f"reverse_{name}"], PALETTE[0], NAMES[name])]
        cells += [(axes[1, column], samples[f"flow_{name}"], PALETTE[1], NAMES[name])]
    left, right, bottom, top = VIEW
    is_outside = real.abs().max() > 3  # data of the user may need other limits
    for ax, cloud, colour, title in cells:
        ax.scatter(cloud[:, 0], cloud[:, 1], s=2, color=colour, linewidths=0, rasterized=True)
        ax.set(title=title, xticks=[], yticks=[])
        if not is_outside:
            ax.set(xlim=(left, right), ylim=(bottom, top))
        ax.set_aspect("equal")
    axes[0, 0].set_ylabel("reverse SDE")
    axes[1, 0].set_ylabel("probability flow")
    return figure


@torch.no_grad()
def plot_trajectories(run: Run, model: ScoreSDE, real: Tensor) -> None:
    """Trajectories from noise to data: the probability flows of all SDEs, and the reverse SDE of VP."""
    figure, axes = subplots(1, 2, size=(10.5, 5.0))
    torch.manual_seed(run.seed)
    noise = torch.randn(10, 2).to(run.device)
    cloud = real[:1_500].cpu()
    for ax, title in zip(axes[0], ("probability flows of x / a", "reverse SDE of x, VP"), strict=True):
        ax.scatter(cloud[:, 0], cloud[:, 1], s=3, color=GREY, alpha=0.5, linewidths=0, rasterized=True)
        ax.set(xlim=(-3.0, 3.6), ylim=(-2.8, 3.0), xlabel="x₁", ylabel="x₂", title=title)
        ax.set_aspect("equal")
    for (name, sde), colour, width in zip(SDES.items(), PALETTE, (5.0, 2.5, 1.0), strict=False):
        for index, path in enumerate(flow_trajectories(model.with_sde(sde), noise)):
            label = NAMES[name] if index == 0 else None
            axes[0, 0].plot(path[:, 0], path[:, 1], color=colour, linewidth=width, alpha=0.8, label=label)
    vp = model.with_sde(SDES["vp"])
    paths = torch.stack(list(reverse_sde_path(vp.sde, vp.score, noise[:4], vp.times(300))), 1).cpu()
    for path, colour in zip(paths, PALETTE, strict=False):
        axes[0, 1].plot(path[:, 0], path[:, 1], color=colour, linewidth=0.8, alpha=0.8)
        axes[0, 1].plot(path[-1:, 0], path[-1:, 1], color=colour, marker="o", markersize=7)
    axes[0, 0].legend(loc="lower right")
    run.figure(
        "trajectories",
        figure,
        "Left: probability-flow trajectories from ten initial noises, in the scale of the data; the flows of all three "
        "SDEs follow the same curves at different speeds. Right: four trajectories of the reverse SDE with their "
        "endpoints.",
    )


def flow_trajectories(model: ScoreSDE, noise: Tensor, steps: int = 120) -> Tensor:
    """Trajectories (count, steps + 1, 2) of x / a along the flow, from a noise-to-signal ratio of 19."""
    sde, field = model.sde, probability_flow_field(model.sde, model.score)
    first, last = time_at_noise_ratio(sde, 19.0) ** 0.5, model.t_min**0.5
    times = torch.linspace(first, last, steps + 1, dtype=torch.float64).square()
    states = [float(sde.scale(times[0])) * 19.0 * noise]
    for step in range(steps):
        states.append(heun(field, states[-1], times[step : step + 2]))
    return torch.stack([(x / a).cpu() for x, a in zip(states, sde.scale(times).tolist(), strict=True)], 1)


@torch.no_grad()
def plot_density(run: Run, model: ScoreSDE, grid_size: int) -> None:
    """The density of the flow and the true density, on a grid."""
    left, right, bottom, top = VIEW
    x1, x2 = torch.linspace(left, right, grid_size), torch.linspace(bottom, top, grid_size)
    rows = torch.cartesian_prod(x2, x1).flip(1)
    learned = model.log_prob(rows.to(run.device), steps=30).cpu().exp()
    truth = moons_log_prob(rows).exp()
    figure, axes = subplots(1, 2, size=(10.0, 3.7))
    max_density = float(truth.max())
    for ax, density, title in zip(axes[0], (truth, learned), ("true density", "density of the flow, VP"), strict=True):
        image = ax.imshow(
            density.reshape(grid_size, grid_size).numpy(),
            extent=VIEW,
            origin="lower",
            cmap=SEQUENTIAL,
            vmin=0,
            vmax=max_density,
        )
        ax.set(title=title, xticks=[], yticks=[])
        ax.grid(visible=False)
    figure.colorbar(image, ax=axes[0].tolist()).outline.set_visible(False)
    run.figure("density", figure, "The density of the probability flow, computed by the change-of-variables formula.")
