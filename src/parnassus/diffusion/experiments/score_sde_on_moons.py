"""One score network, three equations, two ways back to the moons, and its exact density (book secs. 13.1, 13.2.8)."""

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import FreshPoints, Split, open_points, standardised
from parnassus.data.densities import moons_entropy, moons_log_prob
from parnassus.data.own import TOYS
from parnassus.data.seeds import mix
from parnassus.diffusion.ode import heun
from parnassus.diffusion.probability_flow import flow_field, follow
from parnassus.diffusion.reverse_time import reverse_path
from parnassus.diffusion.score_networks import LevelMLP
from parnassus.diffusion.score_sde import ScoreSDE
from parnassus.diffusion.sde import (
    NoisingSDE,
    sub_variance_preserving,
    time_of,
    variance_exploding,
    variance_preserving,
)
from parnassus.optim import Adam
from parnassus.probability import energy_distance
from parnassus.report import PALETTE, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, at_most, between, descend, reported
from parnassus.train.run import Batches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-25", "C-27", "B13.2.8-3", "B13.2.5-1")
expected = {
    "gap_vp": at_most(0.08, "nats that the flow's density lies below the true one on unseen points, VP"),
    "gap_sub_vp": at_most(0.08, "the same under sub-VP"),
    "gap_ve": at_most(0.08, "the same under VE"),
    "reverse_vp": at_most(0.01, "energy distance of samples of the reverse equation to unseen points, VP"),
    "reverse_sub_vp": at_most(0.01, "the same under sub-VP"),
    "reverse_ve": at_most(0.01, "the same under VE"),
    "flow_vp": at_most(0.01, "energy distance of samples of the probability flow to unseen points, VP"),
    "flow_sub_vp": at_most(0.01, "the same under sub-VP"),
    "flow_ve": at_most(0.01, "the same under VE"),
    "data_to_data": reported("energy distance between two sets of points drawn from the truth: less is luck"),
    "nll_vp": reported("mean −log p of unseen points under VP's flow, in nats"),
    "entropy": between(0.285, 0.295, "the least NLL that any model can have"),
    "round_trip": at_most(0.01, "how far a point is from itself, RMS, after the flow there and back"),
}
profiles = {
    "smoke": {"steps": 20, "width": 16, "judged": 50, "drawn": 100, "chain": 20, "fine": 8},
    "gpu": {
        "steps": 30_000, "batch": 4_096, "width": 256, "judged": 10_000, "drawn": 10_000, "chain": 1_000, "fine": 120,
    },
}  # fmt: skip

EQUATIONS: dict[str, NoisingSDE] = {
    "vp": variance_preserving(),
    "sub_vp": sub_variance_preserving(),
    "ve": variance_exploding(0.01, 20.0),
}
NAMES = {"vp": "VP", "sub_vp": "sub-VP", "ve": "VE"}
GREY = PALETTE[7]  # of the data: points become pixels, which cannot follow the page from light to dark
VIEW = (-1.6, 2.6, -1.15, 1.65)  # left, right, bottom and top of the pictures of the moons


@dataclass(frozen=True)
class Experiment:
    data: str = "moons"  # points in the plane: moons, rings, spirals, eight_gaussians, checkerboard, or a file of yours
    steps: int = 5_000  # gradient steps
    batch: int = 256  # points a step, new ones each time where they can be drawn
    width: int = 96  # hidden units of the score network
    lr: float = 4e-3  # Adam's largest learning rate, reached after a tenth of the steps
    judged: int = 500  # points on which the density is judged
    drawn: int = 1_500  # points drawn by each sampler
    chain: int = 200  # steps of the reverse equation
    fine: int = 40  # points a side of the picture of the density

    def model(self) -> ScoreSDE:
        """Trained at noise from 0.01 to 160 times the signal, evenly in its logarithm: all that the others need."""
        return ScoreSDE(LevelMLP(2, self.width, reach=10.5), (2,), variance_exploding(0.01, 160.0))

    def __call__(self, run: Run) -> dict[str, float]:
        batches, unseen = self.points(run)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, model, optimizer, batches):
            warming.step()
            run.log(step, loss=loss)

        run.figure(
            "equations",
            draw_equations(),
            "How much of the data is left, a(t), how much noise is in, b(t), and their ratio, on which alone the score "
            "of x_t / a depends: one network, told the ratio, serves all three.",
        )
        result = self.judge_samples(run, model, unseen.x)
        show_ways(run, model, unseen.x)
        result |= self.judge_density(run, model, unseen.x[: self.judged])
        return result

    def points(self, run: Run) -> tuple[Batches[Tensor], Split]:
        """Batches to learn from, new points at every step if the data can be drawn, and points to be judged on."""
        if self.data in TOYS:
            unseen = TOYS[self.data](2 * self.drawn, seed=mix(run.seed, -1)).to(run.device)
            batches: Batches[Tensor] = FreshPoints(TOYS[self.data], self.batch, self.steps, run.device)
        else:
            data = standardised(open_points(self.data)).to(run.device)
            batches, unseen = data.train.batches(self.batch, self.steps), data.test
        return batches, unseen

    @torch.no_grad()
    def judge_samples(self, run: Run, model: ScoreSDE, unseen: Tensor) -> dict[str, float]:
        """Samples of both ways back under each equation, drawn and measured."""
        real, others = unseen.chunk(2)
        floor = float(energy_distance(real, others))
        clouds: dict[str, Tensor] = {}
        for name, sde in EQUATIONS.items():
            under = model.under(sde)
            clouds[f"reverse_{name}"] = under.sample(self.drawn, steps=self.chain)
            clouds[f"flow_{name}"] = under.sample_flow(self.drawn, steps=max(1, self.chain // 4), solver=heun)
        far = {name: float(energy_distance(cloud, real)) for name, cloud in clouds.items()}
        run.figure(
            "samples",
            draw_samples(real.cpu(), {name: cloud.cpu() for name, cloud in clouds.items()}),
            f"Above, the reverse equation in {self.chain} steps, noise on the way; below, the probability flow in "
            f"{max(1, self.chain // 4)} steps of Heun's method, without. One network drew all six.",
        )
        return {**far, "data_to_data": floor}

    @torch.no_grad()
    def judge_density(self, run: Run, model: ScoreSDE, x: Tensor) -> dict[str, float]:
        """The density of the flow beside the true one, where that is known."""
        given = {name: model.under(sde).log_prob(x, steps=40) for name, sde in EQUATIONS.items()}
        vp = model.under(EQUATIONS["vp"])
        times = vp.times(60)
        noise = follow(vp.sde, vp.score, x, times.flip(0))
        back = follow(vp.sde, vp.score, noise, times)
        result = {
            "nll_vp": -float(given["vp"].mean()),
            "round_trip": float((back - x).square().sum(1).mean().sqrt()),
        }
        if self.data != "moons":  # of other data the true density is not known
            return {**result, **{f"gap_{name}": nan for name in given}, "entropy": nan}
        truth = moons_log_prob(x)
        gaps = {name: float((truth - log_prob).mean()) for name, log_prob in given.items()}
        show_density(run, vp, self.fine)
        run.table(
            "density",
            [{"equation": NAMES[name], "nats above the least": gap} for name, gap in gaps.items()],
            caption="How far the flow's log-density of unseen points lies below the true one: a KL divergence.",
        )
        return {**result, **{f"gap_{name}": gap for name, gap in gaps.items()}, "entropy": moons_entropy()}


@dataclass(frozen=True)
class Sample:
    equation: Literal["vp", "sub_vp", "ve"] = "vp"  # along which equation
    way: Literal["reverse", "flow"] = "flow"  # with noise on the way, or without
    steps: int = 100  # of the sampler
    count: int = 2_000  # how many points

    def __call__(self, model: ScoreSDE) -> Tensor:
        under = model.under(EQUATIONS[self.equation])
        if self.way == "flow":
            return under.sample_flow(self.count, steps=self.steps, solver=heun)
        return under.sample(self.count, steps=self.steps)


def draw_equations() -> "Figure":
    figure, axes = subplots(1, 3, size=(11.0, 3.2))
    t = torch.linspace(0.005, 1, 200, dtype=torch.float64)
    for (name, sde), colour in zip(EQUATIONS.items(), PALETTE, strict=False):
        for ax, values in zip(axes[0], (sde.scale(t), sde.std(t), sde.std(t) / sde.scale(t)), strict=True):
            ax.plot(t, values, color=colour, label=NAMES[name])
    for ax, title in zip(axes[0], ("signal a(t)", "noise b(t)", "noise to signal, b / a"), strict=True):
        ax.set(title=title, xlabel="t")
    axes[0, 1].set_yscale("log")
    axes[0, 2].set_yscale("log")
    axes[0, 0].legend()
    return figure


def draw_samples(real: Tensor, clouds: dict[str, Tensor]) -> "Figure":
    """Data at the left; a column for each equation, the reverse equation above and the flow below."""
    figure, axes = subplots(2, 4, size=(11.5, 4.6))
    cells = [(axes[row, 0], real, GREY, "data") for row in range(2)]
    for column, name in enumerate(EQUATIONS, 1):
        cells += [(axes[0, column], clouds[f"reverse_{name}"], PALETTE[0], NAMES[name])]
        cells += [(axes[1, column], clouds[f"flow_{name}"], PALETTE[1], NAMES[name])]
    left, right, bottom, top = VIEW
    reach = real.abs().max() > 3  # data of one's own may lie elsewhere
    for ax, cloud, colour, title in cells:
        ax.scatter(cloud[:, 0], cloud[:, 1], s=2, color=colour, linewidths=0, rasterized=True)
        ax.set(title=title, xticks=[], yticks=[])
        if not reach:
            ax.set(xlim=(left, right), ylim=(bottom, top))
        ax.set_aspect("equal")
    axes[0, 0].set_ylabel("reverse equation")
    axes[1, 0].set_ylabel("probability flow")
    return figure


@torch.no_grad()
def show_ways(run: Run, model: ScoreSDE, real: Tensor) -> None:
    """Ways of a few noises to the data: three flows drawn over one another, and the reverse equation of VP."""
    figure, axes = subplots(1, 2, size=(10.5, 5.0))
    torch.manual_seed(run.seed)
    noise = torch.randn(10, 2).to(run.device)
    cloud = real[:1_500].cpu()
    for ax, title in zip(axes[0], ("the flows of x / a", "the reverse equation of x, VP"), strict=True):
        ax.scatter(cloud[:, 0], cloud[:, 1], s=3, color=GREY, alpha=0.5, linewidths=0, rasterized=True)
        ax.set(xlim=(-3.0, 3.6), ylim=(-2.8, 3.0), xlabel="x₁", ylabel="x₂", title=title)
        ax.set_aspect("equal")
    for (name, sde), colour, width in zip(EQUATIONS.items(), PALETTE, (5.0, 2.5, 1.0), strict=False):
        for index, way in enumerate(flow_ways(model.under(sde), noise)):
            label = NAMES[name] if index == 0 else None
            axes[0, 0].plot(way[:, 0], way[:, 1], color=colour, linewidth=width, alpha=0.8, label=label)
    vp = model.under(EQUATIONS["vp"])
    ways = torch.stack(list(reverse_path(vp.sde, vp.score, noise[:4], vp.times(300))), 1).cpu()
    for way, colour in zip(ways, PALETTE, strict=False):
        axes[0, 1].plot(way[:, 0], way[:, 1], color=colour, linewidth=0.8, alpha=0.8)
        axes[0, 1].plot(way[-1:, 0], way[-1:, 1], color=colour, marker="o", markersize=7)
    axes[0, 0].legend(loc="lower right")
    run.figure(
        "ways",
        figure,
        "Left: ten noises carried to the data, in the scale of the data; the flows of all three equations are the same "
        "curves, gone along at different paces. Right: four noises shaken all the way; dots are their ends.",
    )


def flow_ways(model: ScoreSDE, noise: Tensor, steps: int = 120) -> Tensor:
    """The ways (count, steps + 1, 2) of x / a along the flow, from where there is 19 times as much noise as signal."""
    sde, field = model.sde, flow_field(model.sde, model.score)
    first, last = time_of(sde, 19.0) ** 0.5, model.first**0.5
    times = torch.linspace(first, last, steps + 1, dtype=torch.float64).square()
    states = [float(sde.scale(times[0])) * 19.0 * noise]
    for step in range(steps):
        states.append(heun(field, states[-1], times[step : step + 2]))
    return torch.stack([(x / a).cpu() for x, a in zip(states, sde.scale(times).tolist(), strict=True)], 1)


@torch.no_grad()
def show_density(run: Run, model: ScoreSDE, fine: int) -> None:
    """The density of the flow beside the true one, on a grid."""
    left, right, bottom, top = VIEW
    across, up = torch.linspace(left, right, fine), torch.linspace(bottom, top, fine)
    rows = torch.cartesian_prod(up, across).flip(1)
    learned = model.log_prob(rows.to(run.device), steps=30).cpu().exp()
    truth = moons_log_prob(rows).exp()
    figure, axes = subplots(1, 2, size=(10.0, 3.7))
    most = float(truth.max())
    for ax, density, title in zip(axes[0], (truth, learned), ("true density", "density of the flow, VP"), strict=True):
        picture = ax.imshow(
            density.reshape(fine, fine).numpy(), extent=VIEW, origin="lower", cmap=SEQUENTIAL, vmin=0, vmax=most
        )
        ax.set(title=title, xticks=[], yticks=[])
        ax.grid(visible=False)
    figure.colorbar(picture, ax=axes[0].tolist()).outline.set_visible(False)
    run.figure("density", figure, "The flow carries a normal density to the data; no sample is drawn for the picture.")
