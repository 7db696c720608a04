"""Real NVP on two moons: the learned density compared with the true one (book sec. 13.1)."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import nan, pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import SampledPoints, Split, open_points, standardise_features
from parnassus.data.built_in.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.data.loading import TOYS
from parnassus.data.seeds import derive_seed
from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.evaluation import round_trip_error
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, draw_blocks, subplots
from parnassus.report.style import DIVERGING, SEQUENTIAL
from parnassus.setting_types import PlaneData
from parnassus.train import Positive, Run, at_most, between, descend, no_band
from parnassus.train.run import BatchSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-4", "B13.1-5", "B13.1-6", "B13.1-10", "B13.1-11")
expected = {
    "nll": no_band("mean −log p(x) of test points, in nats"),
    "entropy": no_band("entropy of the data, the minimum of the NLL, in nats; known for the moons"),
    "gap": at_most(0.1, "KL(q ‖ p) from the true density q, in nats, by quadrature; known for the moons"),
    "mass": between(0.99, 1.01, "integral of the learned density over a grid"),
    "round_trip": at_most(1e-3, "largest error |T(T⁻¹(x)) − x| over test points"),
}
profiles = {
    "smoke": {"steps": 10, "num_layers": 2, "width": 8, "num_test": 500, "grid_size": 120},
    "gpu": {
        "steps": 20_000,
        "batch_size": 4_096,
        "num_layers": 16,
        "width": 128,
        "learning_rate": 3e-3,
        "num_test": 200_000,
    },
}
BOX = (-4.0, 5.0, -3.5, 4.0)  # left, right, bottom and top of the integration grid


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "moons"  # points in the plane: name of a data set, or path of a file
    steps: Positive[int] = 3_000  # gradient steps
    batch_size: Positive[int] = 512  # points per gradient step, newly sampled for built-in data
    num_layers: Positive[int] = 8  # number of couplings
    width: Positive[int] = 64  # units of the hidden layers of each coupling
    num_hidden_layers: Positive[int] = 2  # hidden layers of each coupling
    learning_rate: Positive[float] = 5e-3  # maximum learning rate of Adam, reached after 10 % of the steps
    num_test: Positive[int] = 20_000  # test points, for built-in data
    grid_size: Positive[int] = 600  # points per side of the integration grid

    def model(self) -> Flow:
        return Flow(
            real_nvp(2, num_layers=self.num_layers, width=self.width, num_hidden_layers=self.num_hidden_layers),
            GaussianBase((2,)),
        )

    def __call__(self, run: Run) -> dict[str, float]:
        batches, test = self.load_points(run)
        subset = test.x[:2_000]
        is_moons = self.data == "moons"
        min_nll = float(-moons_log_prob(subset).mean()) if is_moons else 0.0
        model, optimizer, schedule = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )

        for step, loss in descend(run, model, optimizer, batches):
            schedule.step()
            run.log(step, loss=loss)
            if is_moons and step % max(1, self.steps // 60) == 0:
                with torch.no_grad():
                    run.record(step, excess_nll=model.loss(subset) - min_nll)

        with torch.no_grad():
            run.figure("chain", plot_chain(), "The chain T from noise to data and its inverse (book fig. 13.1).")
            plot_samples(run, model, test.take(2_000))
            plot_layers(run, model)
            metrics = {
                "nll": float(model.loss(test.x)),
                "mass": integrate_density(model, self.grid_size, run.device),
                "round_trip": round_trip_error(model, test.x),
            }
            if not is_moons:
                plot_density(run, model, subset)
                return {**metrics, "entropy": nan, "gap": nan}
            gap = plot_density_comparison(run, model)
        steps, excess = run.curve("excess_nll")
        figure = curves({"": (steps, excess)}, x_label="step", y_label="NLL above the entropy (nats)", log_y=True)
        run.figure(
            "gap to the entropy", figure, "NLL of test points minus the mean of −log q(x) under the true density q."
        )
        entropy = moons_entropy()
        run.note(
            "results",
            f"The mean −log p(x) is bounded below by the entropy of the moons, {entropy:.4f} nats. The learned density "
            f"exceeds it by KL(q ‖ p) = {gap:.4f} nats. New training points are sampled at every step, so the gap is "
            "due to the limited expressivity of the couplings and the finite training, not to overfitting.",
        )
        return {**metrics, "entropy": entropy, "gap": gap}

    def load_points(self, run: Run) -> tuple[BatchSource[Tensor], Split]:
        """Training batches, newly sampled at every step for built-in data, and test points."""
        if self.data in TOYS:
            generator = TOYS[self.data]
            test = generator(self.num_test, seed=derive_seed(run.seed, -1)).to(run.device)
            batches: BatchSource[Tensor] = SampledPoints(generator, self.batch_size, self.steps, run.device)
        else:
            data = standardise_features(open_points(self.data)).to(run.device)
            batches, test = data.train.batches(self.batch_size, self.steps), data.test
        return batches, test


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: Flow) -> Tensor:
        return model.sample(self.num_samples)


def integrate_density(model: Flow, grid_size: int, device: torch.device) -> float:
    """∫ p over the box by the trapezoidal rule on `grid_size` × `grid_size` points."""
    left, right, bottom, top = BOX
    x1, x2 = (
        torch.linspace(left, right, grid_size, device=device),
        torch.linspace(bottom, top, grid_size, device=device),
    )
    cell = (x1[1] - x1[0]) * (x2[1] - x2[0])
    rows = torch.cartesian_prod(x1, x2).split(65_536)
    return float(sum(model.log_prob(part).double().exp().sum() for part in rows) * cell)


def plot_chain() -> "Figure":
    """The chain of maps from noise to data (top), and the inverses from data to noise (bottom)."""
    figure, axes = subplots(size=(9.4, 2.3))
    above = {
        "z, noise": (0.0, 1.0),
        "T₁": (2.0, 1.6),
        "T₂": (4.0, 1.6),
        "…": (6.0, 1.6),
        "T_K": (8.0, 1.6),
        "x, data": (10.0, 1.0),
    }
    below = {"T₁⁻¹": (2.0, 0.4), "T₂⁻¹": (4.0, 0.4), "… ": (6.0, 0.4), "T_K⁻¹": (8.0, 0.4)}
    forward = ["z, noise", "T₁", "T₂", "…", "T_K", "x, data"]
    inverse = ["x, data", "T_K⁻¹", "… ", "T₂⁻¹", "T₁⁻¹", "z, noise"]
    arrows = [*pairwise(forward), *pairwise(inverse)]
    draw_blocks(axes[0, 0], {**above, **below}, arrows, random=("z, noise",))
    return figure


def plot_samples(run: Run, model: Flow, test: Split) -> None:
    """Data, their latents, noise, and samples; noise is coloured by the class of its sample."""
    labels = torch.zeros(len(test)) if test.y is None else test.y.float()
    if labels.dim() > 1 or len(labels.unique()) > len(PALETTE):
        labels = torch.zeros(len(test))
    z, _ = model.transform.inverse(test.x)
    noise = torch.randn_like(z)
    samples, _ = model.transform(noise)
    nearest = labels.to(samples.device)[torch.cdist(samples, test.x).argmin(1)]
    panels = {"x, data": test.x, "z = T⁻¹(x)": z, "z ~ N(0, I)": noise, "T(z)": samples}
    figure, axes = subplots(2, 2, size=(8.6, 6.6))
    for index, (ax, (title, values)) in enumerate(zip(axes.flat, panels.items(), strict=True)):
        colour = [PALETTE[int(label) % len(PALETTE)] for label in (labels if index < 2 else nearest)]
        points = values.cpu()
        ax.scatter(points[:, 0], points[:, 1], s=3, c=colour, linewidths=0, rasterized=True)
        ax.set_title(title)
        ax.set_aspect("equal")
        limits = (-3.6, 3.6), (-3.6, 3.6)
        if index in (0, 3):
            low, high = test.x.amin(0).cpu() - 0.3, test.x.amax(0).cpu() + 0.3
            limits = (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))
        ax.set(xlim=limits[0], ylim=limits[1])
    caption = (
        "Top: data and their latents T⁻¹(x), which should be distributed as N(0, I). Bottom: noise and samples T(z). "
        "Colours show the class of the nearest data point. As T is continuous, the parts of the samples are connected "
        "by thin bridges (book fig. 13.2)."
    )
    run.figure("samples", figure, caption)


def plot_layers(run: Run, model: Flow, max_panels: int = 5) -> None:
    """Noise samples after some of the couplings of the chain."""
    from matplotlib.colors import hsv_to_rgb

    chain = model.transform
    assert isinstance(chain, Chain)
    noise = torch.randn(3_000, 2, device=run.device)
    states = list(chain.path(noise))
    at = torch.linspace(0, len(chain), min(max_panels, len(states))).round().int().tolist()
    hue = torch.atan2(noise[:, 1], noise[:, 0]).cpu() / (2 * pi) + 0.5
    colour = hsv_to_rgb(torch.stack([hue, torch.full_like(hue, 0.8), torch.full_like(hue, 0.8)], 1).numpy())
    figure, axes = subplots(1, len(at), size=(2.6 * len(at), 2.9))
    for ax, layer in zip(axes[0], at, strict=True):
        points = states[layer].cpu()
        ax.scatter(points[:, 0], points[:, 1], s=2, c=colour, linewidths=0, rasterized=True)
        (left, low), (right, high) = (points.quantile(level, dim=0).tolist() for level in (0.002, 0.998))
        ax.set(xlim=(left, right), ylim=(low, high), xticks=[], yticks=[])
        ax.set_title("noise" if layer == 0 else f"after {layer}")
    run.figure(
        "samples by layer", figure, "Noise samples after some of the couplings, coloured by their initial angle."
    )


def plot_density_comparison(run: Run, model: Flow) -> float:
    """The true and the learned density and their difference; returns KL(q ‖ p) = ∫ q log(q/p)."""
    grid, cell = moons_grid(spacing=0.02)
    flat = grid.flatten(0, 1)
    true = moons_log_prob(flat)
    learned = model.log_prob(flat.float().to(run.device)).cpu().double()
    shape = grid.shape[:2]
    extent = (float(grid[0, 0, 0]), float(grid[0, -1, 0]), float(grid[0, 0, 1]), float(grid[-1, 0, 1]))
    figure, axes = subplots(1, 3, size=(12.6, 3.4))
    for ax, values, title in zip(axes[0], (true, learned), ("true density q", "learned density p"), strict=False):
        image = ax.imshow(values.exp().view(shape).numpy(), cmap=SEQUENTIAL, extent=extent, origin="lower")
        image.set_clim(0.0, float(true.exp().max()))
        figure.colorbar(image, ax=ax, shrink=0.8).outline.set_visible(False)
        ax.set_title(title)
    difference = (learned.exp() - true.exp()).view(shape)
    limit = float(difference.abs().max())
    image = axes[0, 2].imshow(
        difference.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, extent=extent, origin="lower"
    )
    figure.colorbar(image, ax=axes[0, 2], shrink=0.8).outline.set_visible(False)
    axes[0, 2].set_title("p − q")
    for ax in axes[0]:
        ax.grid(visible=False)
    run.figure("densities", figure, "The true density q of the moons, the learned density p, and their difference.")
    return float((true.exp() * (true - learned)).sum() * cell)


def plot_density(run: Run, model: Flow, points: Tensor, grid_size: int = 300) -> None:
    """The learned density and some test points."""
    low, high = points.amin(0).cpu() - 0.3, points.amax(0).cpu() + 0.3
    x1, x2 = (torch.linspace(float(low[i]), float(high[i]), grid_size) for i in (0, 1))
    rows, columns = torch.meshgrid(x2, x1, indexing="ij")
    grid = torch.stack([columns, rows], dim=-1).view(-1, 2).to(run.device)
    density = model.log_prob(grid).exp().cpu().view(grid_size, grid_size)
    figure, axes = subplots(size=(6.2, 4.8))
    extent = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    image = axes[0, 0].imshow(density.numpy(), cmap=SEQUENTIAL, extent=extent, origin="lower", aspect="auto")
    shown = points[:500].cpu()
    axes[0, 0].scatter(shown[:, 0], shown[:, 1], s=3, color="white", alpha=0.6, linewidths=0, rasterized=True)
    axes[0, 0].grid(visible=False)
    figure.colorbar(image, ax=axes[0, 0]).outline.set_visible(False)
    run.figure("density", figure, "The learned density and test points.")
