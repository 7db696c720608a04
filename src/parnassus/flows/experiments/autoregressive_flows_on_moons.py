"""Autoregressive flows learn two moons whose exact density is known, and what each direction costs (book sec. 13.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.func import jacrev
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.benchmark import Timer

from parnassus.data.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.data.toy import moons
from parnassus.flows import (
    ActNorm,
    AffineSynthesizer,
    Autoregressive,
    Chain,
    Flow,
    GaussianBase,
    MaskedNetwork,
    SplineSynthesizer,
    inverse_autoregressive_flow,
    masked_autoregressive_flow,
)
from parnassus.layers import tanh
from parnassus.optim import Adam
from parnassus.report import FAINT, INK, curves, draw_blocks, subplots
from parnassus.report.ink import SEQUENTIAL, colours
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-8", "B13.1-9")
expected = {
    "kl/affine_maf": at_most(0.1, "KL from the true density to an affine MAF, in nats; it depends on the start"),
    "kl/spline_maf": at_most(0.02, "the same of a MAF with splines"),
    "kl/affine_iaf": at_most(0.15, "the same of an IAF, trained on data in spite of its slow direction"),
    "mass": between(0.997, 1.003, "integral of the spline MAF's density over a grid"),
    "slow_over_fast": at_least(8.0, "time to sample from a MAF of the most coordinates, over that of its density"),
    "entropy": reported("entropy of the moons in nats: the least mean negative log-likelihood there is"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "points": 500, "width": 16, "largest": 8},
    "gpu": {"steps": 20_000, "batch": 2_048, "width": 256, "largest": 256},
}
NAMES = {"affine_maf": "affine MAF", "spline_maf": "spline MAF", "affine_iaf": "affine IAF"}


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_500  # gradient steps
    batch: int = 256  # points a step
    noise: float = 0.1  # standard deviation of the points around their arcs
    points: int = 20_000  # points to learn from, and as many to judge by
    layers: int = 6  # layers of the affine flows; the spline flow has half as many
    width: int = 64  # units of each of two hidden layers
    bins: int = 8  # pieces of a spline
    lr: float = 5e-3  # Adam's largest learning rate
    largest: int = 64  # most coordinates in the comparison of costs

    def model(self) -> SideBySide[Flow]:
        hidden, affine = (self.width, self.width), AffineSynthesizer(bound=3.0)
        spline = SplineSynthesizer(self.bins, bound=4.0)
        few = max(1, self.layers // 2)
        transforms = {
            "affine_maf": masked_autoregressive_flow(2, affine, layers=self.layers, hidden=hidden),
            "spline_maf": masked_autoregressive_flow(2, spline, layers=few, hidden=hidden),
            "affine_iaf": inverse_autoregressive_flow(2, affine, layers=self.layers, hidden=hidden),
        }
        return SideBySide(
            {name: Flow(Chain([transform, ActNorm(2)]), GaussianBase((2,))) for name, transform in transforms.items()}
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, unseen = (moons(self.points, noise=self.noise, seed=2 * run.seed + part) for part in (0, 1))
        train, test = train.to(run.device), unseen.x.to(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1)
        run.keep("warming", warming)
        truth = moons_log_prob(test, noise=self.noise)

        for step, _ in descend(run, model, optimizer, train.batches(self.batch, self.steps)):
            warming.step()
            if step % 50 == 0:
                run.record(step, **{f"kl/{name}": kl(flow, test[:2_000], truth) for name, flow in model.every()})

        entropy = moons_entropy(noise=self.noise)
        gaps = {name: kl(flow, test, truth) for name, flow in model.every()}
        run.figure("the_layer", layer_figure(), LAYER)
        mass = self.show_densities(run, model, gaps)
        self.show_maps(run, model)
        ratio = self.show_costs(run)
        self.tabulate(run, model, gaps, entropy)
        return {
            **{f"kl/{name}": gap for name, gap in gaps.items()},
            "mass": mass,
            "slow_over_fast": ratio,
            "entropy": entropy,
        }

    @torch.no_grad()
    def show_densities(self, run: Run, model: SideBySide[Flow], gaps: Mapping[str, float]) -> float:
        """The true density beside those learned; gives the integral of the spline flow's."""
        grid, cell = moons_grid(noise=self.noise, spacing=self.noise / 5)
        points = grid.flatten(0, 1)
        learned = {name: flow.log_prob(points.float().to(run.device)).exp().cpu() for name, flow in model.every()}
        pictures = {"the truth": moons_log_prob(points, noise=self.noise).exp()}
        pictures |= {f"{NAMES[name]}, KL = {gaps[name]:.3f}": density for name, density in learned.items()}
        brightest = float(pictures["the truth"].max())
        figure, axes = subplots(2, 2, size=(9.0, 6.2))
        left, low, right, high = *grid[0, 0].tolist(), *grid[-1, -1].tolist()
        for ax, (name, density) in zip(axes.flat, pictures.items(), strict=True):
            shown = density.reshape(grid.shape[:2]).numpy()
            ax.imshow(
                shown, origin="lower", extent=(left, right, low, high), cmap=SEQUENTIAL, vmin=0, vmax=1.2 * brightest
            )
            ax.set(xticks=[], yticks=[], title=name)
            ax.grid(visible=False)
        caption = (
            "Densities on one scale. An affine layer stretches and shifts one coordinate by what the other says, so it "
            "can bend a Gaussian but hardly tear it: a thread or a haze joins the moons. A spline can be nearly flat."
        )
        run.figure("densities", figure, caption)
        return float(learned["spline_maf"].sum() * cell)

    @torch.no_grad()
    def show_maps(self, run: Run, model: SideBySide[Flow]) -> None:
        """The map that one layer makes of its last coordinate, for some values of the first."""
        line = torch.linspace(-3, 3, 301, device=run.device)
        figure, axes = subplots(1, 2, size=(9.0, 3.8))
        for ax, name in zip(axes[0], ("affine_maf", "spline_maf"), strict=True):
            layer = next(part for part in model.one(name).modules() if isinstance(part, Autoregressive))
            first = torch.linspace(-1.5, 1.5, 5, device=run.device)
            for z1, colour in zip(first.tolist(), colours(5), strict=True):
                z = torch.stack([torch.full_like(line, z1), line], 1)
                image, _ = layer(z)
                ax.plot(line.cpu(), image[:, 1].cpu(), color=colour, label=f"z₁ = {z1:+.2f}")
            ax.set(xlabel="z₂", ylabel="z′₂ = τ(z₂; c₂(z₁))", title=NAMES[name], ylim=(-5, 5))
        axes[0, 1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        caption = "What the first layer that the data meet does to the second coordinate, for five values of the first."
        run.figure("maps", figure, caption)

    @torch.no_grad()
    def show_costs(self, run: Run) -> float:
        """Time of both directions by the number of coordinates; gives their ratio at the largest."""
        sizes = [size for size in (2, 4, 8, 16, 32, 64, 128, 256) if size <= self.largest]
        times: dict[str, list[float]] = {
            "density by MAF": [],
            "samples by MAF": [],
            "density by IAF": [],
            "samples by IAF": [],
        }
        for dim in sizes:
            x = torch.randn(256, dim, device=run.device)
            for family, name in ((masked_autoregressive_flow, "MAF"), (inverse_autoregressive_flow, "IAF")):
                flow = family(dim, AffineSynthesizer(), hidden=(128, 128)).to(run.device)
                for verb, action in (("density", flow.inverse), ("samples", flow)):
                    timer = Timer("action(x)", globals={"action": action, "x": x})
                    times[f"{verb} by {name}"].append(min(timer.blocked_autorange(min_run_time=0.1).times))
        lines = {name: (sizes, [1_000 * value for value in row]) for name, row in times.items()}
        figure = curves(lines, x_label="coordinates D", y_label="ms for 256 points", log_x=True, log_y=True)
        figure.axes[0].set_xticks(sizes, [str(size) for size in sizes], minor=False)
        figure.axes[0].minorticks_off()
        caption = (
            "Five affine layers with 2 × 128 hidden units, untrained. MAF has the quick density and IAF the quick "
            "samples; each pays for it with D passes in the other direction."
        )
        run.figure("costs", figure, caption)
        return times["samples by MAF"][-1] / times["density by MAF"][-1]

    def tabulate(self, run: Run, model: SideBySide[Flow], gaps: Mapping[str, float], entropy: float) -> None:
        rows: list[dict[str, str | float]] = []
        for name, flow in model.every():
            layers = sum(isinstance(part, Autoregressive) for part in flow.modules())
            quick_density = name != "affine_iaf"
            rows.append(
                {
                    "flow": NAMES[name],
                    "parameters": float(sum(parameter.numel() for parameter in flow.parameters())),
                    "NLL (nats)": entropy + gaps[name],
                    "above the entropy": gaps[name],
                    "passes a density": float(layers if quick_density else 2 * layers),
                    "passes a sample": float(2 * layers if quick_density else layers),
                }
            )
        caption = f"No model can have a mean NLL below the entropy, {entropy:.3f} nats."
        run.table("the three flows", rows, caption)
        run.note(
            "what to see",
            f"The spline flow comes within {gaps['spline_maf']:.3f} nats of the true entropy with "
            f"{max(1, self.layers // 2)} layers; the affine flows have {self.layers} and stay further away, how far "
            "depends on the start. MAF and IAF are one family walked in two directions: what they waste is much the "
            "same, what they cost is not.",
        )


@dataclass(frozen=True)
class Sample:
    flow: Literal["spline_maf", "affine_maf", "affine_iaf"] = "spline_maf"  # which of the three
    count: int = 2_000  # how many points

    def __call__(self, model: SideBySide[Flow]) -> Tensor:
        return model.one(self.flow).sample(self.count)


LAYER = (
    "Left: one coordinate of an autoregressive layer. The conditioner c_i sees what comes before it, and what it says, "
    "h_i, steers the synthesizer τ that moves z_i; what comes after is not heard (book fig. 13.3, drawn anew). "
    "Right: the Jacobian ∂z′/∂z of a masked layer with eight coordinates, by autograd: a triangle (book eq. 13.15)."
)


def layer_figure() -> "Figure":
    """Conditioner and synthesizer of one coordinate, and the Jacobian of all of them."""
    figure, axes = subplots(1, 2, size=(10.0, 3.6))
    left, right = axes[0]
    left.get_gridspec().set_width_ratios([2.1, 1.0])
    before, own, after = "z₁ … z_{i−1}", "z_i", "z_{i+1} … z_D"
    blocks = {
        before: (0.0, 2.2),
        own: (2.8, 2.2),
        after: (5.4, 2.2),
        "c_i": (0.0, 1.1),
        "h_i": (1.4, 1.1),
        "τ": (2.8, 1.1),
        "z′_i": (2.8, 0.0),
    }
    arrows = [(before, "c_i"), ("c_i", "h_i"), ("h_i", "τ"), (own, "τ"), ("τ", "z′_i")]
    draw_blocks(left, blocks, arrows, random=(before, own, after, "z′_i"))
    for words, place in (("conditioner", (0.0, 0.72)), ("synthesizer", (3.75, 1.1)), ("not heard", (5.4, 1.82))):
        left.text(*place, words, ha="center", va="center", fontsize=9, color=FAINT if place[1] > 1.5 else INK)

    layer = Autoregressive(MaskedNetwork(8, 2, hidden=(32,), activation=tanh), AffineSynthesizer())
    slopes = jacrev(lambda point: layer(point[None])[0][0])(torch.linspace(-1, 1, 8)).detach()
    shown = slopes.abs().masked_fill(slopes == 0, torch.nan)
    right.imshow(shown.numpy(), cmap=SEQUENTIAL, norm="log")
    right.grid(visible=False)
    right.set(xlabel="z_j", ylabel="z′_i", xticks=range(8), yticks=range(8))
    for labels in (right.set_xticklabels, right.set_yticklabels):
        labels([str(index) for index in range(1, 9)])
    return figure


@torch.no_grad()
def kl(flow: Flow, x: Tensor, truth: Tensor) -> float:
    """Mean of log q(x) − log p(x) over points x drawn from q: how many nats the flow wastes on a point."""
    return float((truth[: len(x)] - flow.log_prob(x).double()).mean())
