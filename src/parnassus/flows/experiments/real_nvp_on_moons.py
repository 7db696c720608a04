"""A Real NVP learns the density of two moons, held against the true one (book sec. 13.1)."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import nan, pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import FreshPoints, Split, open_points, standardised
from parnassus.data.densities import moons_entropy, moons_grid, moons_log_prob
from parnassus.data.own import TOYS
from parnassus.data.seeds import mix
from parnassus.flows.coupling import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.optim import Adam
from parnassus.report import PALETTE, curves, draw_blocks, subplots
from parnassus.report.ink import DIVERGING, SEQUENTIAL
from parnassus.train import Run, at_most, between, descend, reported
from parnassus.train.run import Batches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-4", "B13.1-5", "B13.1-6", "B13.1-10", "B13.1-11")
expected = {
    "nll": reported("mean −log p of unseen points, in nats"),
    "entropy": reported("the least NLL that any model can have, in nats; known for the moons"),
    "gap": at_most(0.1, "KL from the true density to the learned one, in nats, by quadrature; known for the moons"),
    "mass": between(0.99, 1.01, "integral of the learned density over a wide grid"),
    "round_trip": at_most(1e-3, "how far T(T⁻¹(x)) is from x at worst"),
}
profiles = {
    "smoke": {"steps": 10, "layers": 2, "width": 8, "unseen": 500, "fine": 120},
    "gpu": {"steps": 20_000, "batch": 4_096, "layers": 16, "width": 128, "lr": 3e-3, "unseen": 200_000},
}
BOX = (-4.0, 5.0, -3.5, 4.0)  # left, right, bottom and top of the grid on which the learned density is integrated


@dataclass(frozen=True)
class Experiment:
    data: str = "moons"  # points in the plane: moons, rings, spirals, eight_gaussians, checkerboard, or a file of yours
    steps: int = 3_000  # gradient steps
    batch: int = 512  # points a step, new ones each time where they can be drawn
    layers: int = 8  # couplings
    width: int = 64  # hidden units of their networks
    depth: int = 2  # hidden layers of their networks
    lr: float = 5e-3  # Adam's largest learning rate, reached after a tenth of the steps
    unseen: int = 20_000  # points on which the density is judged
    fine: int = 600  # points a side of the grid on which it is integrated

    def model(self) -> Flow:
        return Flow(real_nvp(2, layers=self.layers, width=self.width, depth=self.depth), GaussianBase((2,)))

    def __call__(self, run: Run) -> dict[str, float]:
        batches, unseen = self.points(run)
        few = unseen.x[:2_000]
        moons = self.data == "moons"
        least = float(-moons_log_prob(few).mean()) if moons else 0.0
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)

        for step, loss in descend(run, model, optimizer, batches):
            warming.step()
            run.log(step, loss=loss)
            if moons and step % max(1, self.steps // 60) == 0:
                with torch.no_grad():
                    run.record(step, above_the_least=model.loss(few) - least)

        with torch.no_grad():
            run.figure("chain", draw_chain(), "T⁻¹ takes data to noise, T takes noise to data (book fig. 13.1).")
            show_clouds(run, model, unseen.take(2_000))
            show_layers(run, model)
            z, _ = model.transform.inverse(unseen.x)
            numbers = {
                "nll": float(model.loss(unseen.x)),
                "mass": mass(model, self.fine, run.device),
                "round_trip": float((model.transform(z)[0] - unseen.x).abs().max()),
            }
            if not moons:
                show_density(run, model, few)
                return {**numbers, "entropy": nan, "gap": nan}
            gap = show_both_densities(run, model)
        steps, above = run.curve("above_the_least")
        figure = curves({"": (steps, above)}, x_label="step", y_label="nats above the entropy", log_y=True)
        run.figure("gap", figure, "NLL of unseen points less the mean of −log q there, which no model can go below.")
        entropy = moons_entropy()
        run.note(
            "the gap",
            f"No model can have a mean −log p below the entropy of the moons, {entropy:.4f} nats. This one stays "
            f"{gap:.4f} nats above it, which is KL(q ‖ p). The points it learned from were new at every step, so the "
            "rest is what its couplings cannot bend or have not yet learned, not overfitting.",
        )
        return {**numbers, "entropy": entropy, "gap": gap}

    def points(self, run: Run) -> tuple[Batches[Tensor], Split]:
        """Batches to learn from, new points at every step if the data can be drawn, and points to be judged on."""
        if self.data in TOYS:
            generator = TOYS[self.data]
            unseen = generator(self.unseen, seed=mix(run.seed, -1)).to(run.device)
            batches: Batches[Tensor] = FreshPoints(generator, self.batch, self.steps, run.device)
        else:
            data = standardised(open_points(self.data)).to(run.device)
            batches, unseen = data.train.batches(self.batch, self.steps), data.test
        return batches, unseen


@dataclass(frozen=True)
class Sample:
    count: int = 2_000  # how many points

    def __call__(self, model: Flow) -> Tensor:
        return model.sample(self.count)


def mass(model: Flow, fine: int, device: torch.device) -> float:
    """∫ p over the box, by the trapezium rule on `fine` × `fine` points."""
    left, right, bottom, top = BOX
    across, up = torch.linspace(left, right, fine, device=device), torch.linspace(bottom, top, fine, device=device)
    cell = (across[1] - across[0]) * (up[1] - up[0])
    rows = torch.cartesian_prod(across, up).split(65_536)
    return float(sum(model.log_prob(some).double().exp().sum() for some in rows) * cell)


def draw_chain() -> "Figure":
    """There and back: the chain of maps, above from noise to data, below its inverses from data to noise."""
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
    there = ["z, noise", "T₁", "T₂", "…", "T_K", "x, data"]
    back = ["x, data", "T_K⁻¹", "… ", "T₂⁻¹", "T₁⁻¹", "z, noise"]
    arrows = [*pairwise(there), *pairwise(back)]
    draw_blocks(axes[0, 0], {**above, **below}, arrows, random=("z, noise",))
    return figure


def show_clouds(run: Run, model: Flow, unseen: Split) -> None:
    """Data, data as noise, noise, noise as data; noise has the colour of the data that it becomes."""
    labels = torch.zeros(len(unseen)) if unseen.y is None else unseen.y.float()
    if labels.dim() > 1 or len(labels.unique()) > len(PALETTE):
        labels = torch.zeros(len(unseen))
    z, _ = model.transform.inverse(unseen.x)
    noise = torch.randn_like(z)
    drawn, _ = model.transform(noise)
    nearest = labels.to(drawn.device)[torch.cdist(drawn, unseen.x).argmin(1)]
    clouds = {"x, data": unseen.x, "z = T⁻¹(x)": z, "z ~ N(0, I)": noise, "T(z)": drawn}
    figure, axes = subplots(2, 2, size=(8.6, 6.6))
    for index, (ax, (title, cloud)) in enumerate(zip(axes.flat, clouds.items(), strict=True)):
        colour = [PALETTE[int(kind) % len(PALETTE)] for kind in (labels if index < 2 else nearest)]
        points = cloud.cpu()
        ax.scatter(points[:, 0], points[:, 1], s=3, c=colour, linewidths=0, rasterized=True)
        ax.set_title(title)
        ax.set_aspect("equal")
        limits = (-3.6, 3.6), (-3.6, 3.6)
        if index in (0, 3):
            low, high = unseen.x.amin(0).cpu() - 0.3, unseen.x.amax(0).cpu() + 0.3
            limits = (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))
        ax.set(xlim=limits[0], ylim=limits[1])
    caption = (
        "Above: data and where T⁻¹ takes them, which should look like noise. Below: noise and where T takes it. "
        "Colours name the nearest part of the data. A bijection cannot tear the plane: a thin bridge joins the parts "
        "(book fig. 13.2)."
    )
    run.figure("four clouds", figure, caption)


def show_layers(run: Run, model: Flow, shown: int = 5) -> None:
    """Noise on its way through the chain, after some of its couplings."""
    from matplotlib.colors import hsv_to_rgb

    chain = model.transform
    assert isinstance(chain, Chain)
    noise = torch.randn(3_000, 2, device=run.device)
    states = list(chain.path(noise))
    at = torch.linspace(0, len(chain), min(shown, len(states))).round().int().tolist()
    hue = torch.atan2(noise[:, 1], noise[:, 0]).cpu() / (2 * pi) + 0.5
    colour = hsv_to_rgb(torch.stack([hue, torch.full_like(hue, 0.8), torch.full_like(hue, 0.8)], 1).numpy())
    figure, axes = subplots(1, len(at), size=(2.6 * len(at), 2.9))
    for ax, layer in zip(axes[0], at, strict=True):
        points = states[layer].cpu()
        ax.scatter(points[:, 0], points[:, 1], s=2, c=colour, linewidths=0, rasterized=True)
        (left, low), (right, high) = (points.quantile(share, dim=0).tolist() for share in (0.002, 0.998))
        ax.set(xlim=(left, right), ylim=(low, high), xticks=[], yticks=[])
        ax.set_title("noise" if layer == 0 else f"after {layer}")
    run.figure("layers", figure, "Noise after some of the couplings; colours are the angle from which a point came.")


def show_both_densities(run: Run, model: Flow) -> float:
    """The true density, the learned one, and their ratio; returns ∫ q log(q/p)."""
    grid, cell = moons_grid(spacing=0.02)
    flat = grid.flatten(0, 1)
    true = moons_log_prob(flat)
    learned = model.log_prob(flat.float().to(run.device)).cpu().double()
    shape = grid.shape[:2]
    extent = (float(grid[0, 0, 0]), float(grid[0, -1, 0]), float(grid[0, 0, 1]), float(grid[-1, 0, 1]))
    figure, axes = subplots(1, 3, size=(12.6, 3.4))
    for ax, values, title in zip(axes[0], (true, learned), ("true density q", "learned density p"), strict=False):
        picture = ax.imshow(values.exp().view(shape).numpy(), cmap=SEQUENTIAL, extent=extent, origin="lower")
        picture.set_clim(0.0, float(true.exp().max()))
        figure.colorbar(picture, ax=ax, shrink=0.8).outline.set_visible(False)
        ax.set_title(title)
    difference = (learned.exp() - true.exp()).view(shape)
    limit = float(difference.abs().max())
    picture = axes[0, 2].imshow(
        difference.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, extent=extent, origin="lower"
    )
    figure.colorbar(picture, ax=axes[0, 2], shrink=0.8).outline.set_visible(False)
    axes[0, 2].set_title("p − q")
    for ax in axes[0]:
        ax.grid(visible=False)
    run.figure("densities", figure, "The true density of the moons, the one learned from draws, and what is left.")
    return float((true.exp() * (true - learned)).sum() * cell)


def show_density(run: Run, model: Flow, points: Tensor, fine: int = 300) -> None:
    """The learned density with some unseen points on it."""
    low, high = points.amin(0).cpu() - 0.3, points.amax(0).cpu() + 0.3
    across, up = (torch.linspace(float(low[i]), float(high[i]), fine) for i in (0, 1))
    rows, columns = torch.meshgrid(up, across, indexing="ij")
    grid = torch.stack([columns, rows], dim=-1).view(-1, 2).to(run.device)
    density = model.log_prob(grid).exp().cpu().view(fine, fine)
    figure, axes = subplots(size=(6.2, 4.8))
    extent = (float(low[0]), float(high[0]), float(low[1]), float(high[1]))
    picture = axes[0, 0].imshow(density.numpy(), cmap=SEQUENTIAL, extent=extent, origin="lower", aspect="auto")
    shown = points[:500].cpu()
    axes[0, 0].scatter(shown[:, 0], shown[:, 1], s=3, color="white", alpha=0.6, linewidths=0, rasterized=True)
    axes[0, 0].grid(visible=False)
    figure.colorbar(picture, ax=axes[0, 0]).outline.set_visible(False)
    run.figure("density", figure, "The learned density, and unseen points.")
