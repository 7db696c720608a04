"""Masked and inverse autoregressive flows on two moons: KL divergence and cost of both directions (book sec. 13.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor
from torch.func import jacrev
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.benchmark import Timer

from parnassus.data.built_in.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.data.built_in.toy import moons
from parnassus.flows import (
    MADE,
    ActNorm,
    AffineSynthesizer,
    AutoregressiveTransform,
    Chain,
    Flow,
    GaussianBase,
    SplineSynthesizer,
    inverse_autoregressive_flow,
    masked_autoregressive_flow,
)
from parnassus.layers import tanh
from parnassus.optim import Adam
from parnassus.report import FAINT, INK, curves, draw_blocks, subplots
from parnassus.report.style import SEQUENTIAL, colours
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-8", "B13.1-9")
expected = {
    "kl/affine_maf": at_most(
        0.1, "KL(q ‖ p) from the true density q to an affine MAF, in nats; depends on the initialisation"
    ),
    "kl/spline_maf": at_most(0.02, "KL(q ‖ p) from the true density q to a MAF with spline synthesizers, in nats"),
    "kl/affine_iaf": at_most(
        0.15, "KL(q ‖ p) from the true density q to an affine IAF trained by maximum likelihood, in nats"
    ),
    "mass": between(0.997, 1.003, "integral of the density of the spline MAF over a grid"),
    "sampling_time_ratio": at_least(8.0, "ratio of the times of sampling and density, affine MAF of dimension max_dim"),
    "entropy": no_band("entropy of the moons in nats, the minimum of the mean negative log-likelihood"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "num_points": 500, "width": 16, "max_dim": 8},
    "gpu": {"steps": 20_000, "batch_size": 2_048, "width": 256, "max_dim": 256},
}
NAMES = {"affine_maf": "affine MAF", "spline_maf": "spline MAF", "affine_iaf": "affine IAF"}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_500  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step
    noise_std: Positive[float] = 0.1  # standard deviation of the points around their arcs
    num_points: Positive[int] = 20_000  # training points; as many test points
    num_layers: Positive[int] = 6  # layers of the affine flows; half as many for the spline flow
    width: Positive[int] = 64  # units of the two hidden layers of each conditioner
    num_bins: Positive[int] = 8  # bins of each spline
    learning_rate: Positive[float] = 5e-3  # maximum learning rate of Adam
    max_dim: Positive[int] = 64  # largest dimension in the comparison of costs

    def model(self) -> ModelCollection[Flow]:
        hidden_sizes, affine = (self.width, self.width), AffineSynthesizer(bound=3.0)
        spline = SplineSynthesizer(self.num_bins, bound=4.0)
        num_spline_layers = max(1, self.num_layers // 2)
        transforms = {
            "affine_maf": masked_autoregressive_flow(2, affine, num_layers=self.num_layers, hidden_sizes=hidden_sizes),
            "spline_maf": masked_autoregressive_flow(
                2, spline, num_layers=num_spline_layers, hidden_sizes=hidden_sizes
            ),
            "affine_iaf": inverse_autoregressive_flow(2, affine, num_layers=self.num_layers, hidden_sizes=hidden_sizes),
        }
        return ModelCollection(
            {name: Flow(Chain([transform, ActNorm(2)]), GaussianBase((2,))) for name, transform in transforms.items()}
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = (moons(self.num_points, noise=self.noise_std, seed=2 * run.seed + part) for part in (0, 1))
        train, x = train.to(run.device), test.x.to(run.device)
        model, optimizer, schedule = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1),
        )
        true_log_prob = moons_log_prob(x, noise=self.noise_std)

        for step, _ in descend(run, model, optimizer, train.batches(self.batch_size, self.steps)):
            schedule.step()
            if step % 50 == 0:
                run.record(
                    step,
                    **{
                        f"kl/{name}": kl_divergence(flow, x[:2_000], true_log_prob)
                        for name, flow in model.named_models()
                    },
                )

        entropy = moons_entropy(noise=self.noise_std)
        divergences = {name: kl_divergence(flow, x, true_log_prob) for name, flow in model.named_models()}
        run.figure("autoregressive layer", plot_layer(), LAYER)
        mass = self.plot_densities(run, model, divergences)
        self.plot_synthesizers(run, model)
        ratio = self.measure_costs(run)
        self.summarise(run, model, divergences, entropy)
        return {
            **{f"kl/{name}": divergence for name, divergence in divergences.items()},
            "mass": mass,
            "sampling_time_ratio": ratio,
            "entropy": entropy,
        }

    @torch.no_grad()
    def plot_densities(self, run: Run, model: ModelCollection[Flow], divergences: Mapping[str, float]) -> float:
        """The true and the learned densities; returns the integral of the density of the spline flow."""
        grid, cell = moons_grid(noise=self.noise_std, spacing=self.noise_std / 5)
        points = grid.flatten(0, 1)
        densities = {
            name: flow.log_prob(points.float().to(run.device)).exp().cpu() for name, flow in model.named_models()
        }
        panels = {"true density": moons_log_prob(points, noise=self.noise_std).exp()}
        panels |= {f"{NAMES[name]}, KL = {divergences[name]:.3f}": density for name, density in densities.items()}
        maximum = float(panels["true density"].max())
        figure, axes = subplots(2, 2, size=(9.0, 6.2))
        left, low, right, high = *grid[0, 0].tolist(), *grid[-1, -1].tolist()
        for ax, (name, density) in zip(axes.flat, panels.items(), strict=True):
            image = density.reshape(grid.shape[:2]).numpy()
            ax.imshow(
                image, origin="lower", extent=(left, right, low, high), cmap=SEQUENTIAL, vmin=0, vmax=1.2 * maximum
            )
            ax.set(xticks=[], yticks=[], title=name)
            ax.grid(visible=False)
        caption = (
            "Densities on a common scale. Affine layers scale and shift one coordinate as a function of the other, so "
            "bridges of probability mass between the moons remain. Splines can have derivatives near zero."
        )
        run.figure("densities", figure, caption)
        return float(densities["spline_maf"].sum() * cell)

    @torch.no_grad()
    def plot_synthesizers(self, run: Run, model: ModelCollection[Flow]) -> None:
        """The synthesizer of the second coordinate in one layer, for some values of the first coordinate."""
        line = torch.linspace(-3, 3, 301, device=run.device)
        figure, axes = subplots(1, 2, size=(9.0, 3.8))
        for ax, name in zip(axes[0], ("affine_maf", "spline_maf"), strict=True):
            layer = next(part for part in model.model(name).modules() if isinstance(part, AutoregressiveTransform))
            first = torch.linspace(-1.5, 1.5, 5, device=run.device)
            for z1, colour in zip(first.tolist(), colours(5), strict=True):
                z = torch.stack([torch.full_like(line, z1), line], 1)
                image, _ = layer(z)
                ax.plot(line.cpu(), image[:, 1].cpu(), color=colour, label=f"z₁ = {z1:+.2f}")
            ax.set(xlabel="z₂", ylabel="z′₂ = τ(z₂; c₂(z₁))", title=NAMES[name], ylim=(-5, 5))
        axes[0, 1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        caption = "The map of the second coordinate in one layer, for five values of the first."
        run.figure("synthesizers", figure, caption)

    @torch.no_grad()
    def measure_costs(self, run: Run) -> float:
        """Time of both directions by dimension; returns their ratio for a MAF of the largest dimension."""
        sizes = [size for size in (2, 4, 8, 16, 32, 64, 128, 256) if size <= self.max_dim]
        times: dict[str, list[float]] = {
            "density, MAF": [],
            "sampling, MAF": [],
            "density, IAF": [],
            "sampling, IAF": [],
        }
        for dim in sizes:
            x = torch.randn(256, dim, device=run.device)
            for family, name in ((masked_autoregressive_flow, "MAF"), (inverse_autoregressive_flow, "IAF")):
                flow = family(dim, AffineSynthesizer(), hidden_sizes=(128, 128)).to(run.device)
                for direction, action in (("density", flow.inverse), ("sampling", flow)):
                    timer = Timer("action(x)", globals={"action": action, "x": x})
                    times[f"{direction}, {name}"].append(min(timer.blocked_autorange(min_run_time=0.1).times))
        lines = {name: (sizes, [1_000 * value for value in row]) for name, row in times.items()}
        figure = curves(lines, x_label="dimension D", y_label="time per 256 points (ms)", log_x=True, log_y=True)
        figure.axes[0].set_xticks(sizes, [str(size) for size in sizes], minor=False)
        figure.axes[0].minorticks_off()
        caption = (
            "Five affine layers with 2 × 128 hidden units, untrained. The density is fast for MAF and sampling for "
            "IAF; the other direction takes D passes per layer."
        )
        run.figure("time by dimension", figure, caption)
        return times["sampling, MAF"][-1] / times["density, MAF"][-1]

    def summarise(
        self, run: Run, model: ModelCollection[Flow], divergences: Mapping[str, float], entropy: float
    ) -> None:
        rows: list[dict[str, str | float]] = []
        for name, flow in model.named_models():
            layers = sum(isinstance(part, AutoregressiveTransform) for part in flow.modules())
            is_maf = name != "affine_iaf"
            rows.append(
                {
                    "flow": NAMES[name],
                    "parameters": float(sum(parameter.numel() for parameter in flow.parameters())),
                    "NLL (nats)": entropy + divergences[name],
                    "KL (nats)": divergences[name],
                    "passes per density": float(layers if is_maf else 2 * layers),
                    "passes per sample": float(2 * layers if is_maf else layers),
                }
            )
        caption = f"The mean NLL is bounded below by the entropy, {entropy:.3f} nats."
        run.table("flows", rows, caption)
        run.note(
            "results",
            f"The spline flow with {max(1, self.num_layers // 2)} layers is within {divergences['spline_maf']:.3f} "
            f"nats of the entropy. The affine flows with {self.num_layers} layers are further away, by an amount that "
            "depends on the initialisation. MAF and IAF are inverses of each other: their divergences are similar, "
            "their costs differ.",
        )


@dataclass(frozen=True)
class Sample:
    flow: Literal["spline_maf", "affine_maf", "affine_iaf"] = "spline_maf"  # flow to sample from
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: ModelCollection[Flow]) -> Tensor:
        return model.model(self.flow).sample(self.num_samples)


LAYER = (
    "Left: one coordinate of an autoregressive layer. The conditioner c_i maps the preceding coordinates to the "
    "parameters h_i of the synthesizer τ, which transforms z_i; later coordinates are not used (book fig. 13.3, "
    "redrawn). Right: the lower triangular Jacobian ∂z′/∂z of a masked layer with eight coordinates, by autograd (book "
    "eq. 13.15)."
)


def plot_layer() -> "Figure":
    """The conditioner and synthesizer of one coordinate, and the Jacobian of a layer."""
    figure, axes = subplots(1, 2, size=(10.0, 3.6))
    left, right = axes[0]
    left.get_gridspec().set_width_ratios([2.1, 1.0])
    previous, current, later = "z₁ … z_{i−1}", "z_i", "z_{i+1} … z_D"
    blocks = {
        previous: (0.0, 2.2),
        current: (2.8, 2.2),
        later: (5.4, 2.2),
        "c_i": (0.0, 1.1),
        "h_i": (1.4, 1.1),
        "τ": (2.8, 1.1),
        "z′_i": (2.8, 0.0),
    }
    arrows = [(previous, "c_i"), ("c_i", "h_i"), ("h_i", "τ"), (current, "τ"), ("τ", "z′_i")]
    draw_blocks(left, blocks, arrows, random=(previous, current, later, "z′_i"))
    for label, position in (("conditioner", (0.0, 0.72)), ("synthesizer", (3.75, 1.1)), ("not used", (5.4, 1.82))):
        left.text(*position, label, ha="center", va="center", fontsize=9, color=FAINT if position[1] > 1.5 else INK)

    layer = AutoregressiveTransform(MADE(8, 2, hidden_sizes=(32,), activation=tanh), AffineSynthesizer())
    jacobian = jacrev(lambda point: layer(point[None])[0][0])(torch.linspace(-1, 1, 8)).detach()
    magnitudes = jacobian.abs().masked_fill(jacobian == 0, torch.nan)
    right.imshow(magnitudes.numpy(), cmap=SEQUENTIAL, norm="log")
    right.grid(visible=False)
    right.set(xlabel="z_j", ylabel="z′_i", xticks=range(8), yticks=range(8))
    for set_labels in (right.set_xticklabels, right.set_yticklabels):
        set_labels([str(index) for index in range(1, 9)])
    return figure


@torch.no_grad()
def kl_divergence(flow: Flow, x: Tensor, true_log_prob: Tensor) -> float:
    """KL(q ‖ p) as the mean of log q(x) − log p(x) over samples x of q."""
    return float((true_log_prob[: len(x)] - flow.log_prob(x).double()).mean())
