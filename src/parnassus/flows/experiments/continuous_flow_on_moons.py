"""A continuous flow learns two moons: noise follows a differential equation to the data (book sec. 13.1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data.densities import moons_log_prob
from parnassus.flows.continuous import ContinuousTransform, TimeField
from parnassus.flows.experiments.residual_flow_on_moons import likelihood, moons_or, show_density
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.traces import random_signs, unit_directions
from parnassus.layers import mlp
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between, descend, reported

covers = ("B13.1-13",)
expected = {
    "test_nll": at_most(0.65, "−log p(x) of an unseen point, in nats"),
    "divergence": at_most(0.35, "how far above the true −log p(x) of the same points that is: KL(q ‖ p)"),
    "mass": between(0.99, 1.01, "the density summed over a fine grid"),
    "round_trip": at_most(2e-3, "how far a sample lands from itself after the way back and forth, at worst"),
    "evaluations": reported("evaluations of the field for a density with a tolerance of 1e-5"),
    "spread_of_one_sign": reported("standard deviation of a log-density with one random direction a trace, in nats"),
    "bias_of_one_sign": between(-4.5, 4.5, "the mean error of these log-densities, in standard errors"),
}
profiles = {"smoke": {"steps": 4, "width": 8, "grid": 40, "draws": 10}, "gpu": {"steps": 4_000, "tolerance": 1e-4}}

MOMENTS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Experiment:
    data: str = "moons"  # points in the plane: moons, eight_gaussians, checkerboard, rings, spirals, or a file of yours
    steps: int = 600  # gradient steps
    batch: int = 256  # points a step
    width: int = 64  # sine waves in each of two hidden layers of the field
    tolerance: float = 1e-3  # of the solver while training; 1e-5 afterwards
    lr: float = 1e-2  # Adam's largest learning rate, reached after a tenth of the steps
    grid: int = 120  # places along a side where densities are drawn
    draws: int = 100  # estimates of each log-density with one random direction

    def model(self) -> Flow:
        field = TimeField(mlp((3, self.width, self.width, 2), activation=torch.sin))
        return Flow(ContinuousTransform(field, tolerance=self.tolerance), GaussianBase((2,)))

    def __call__(self, run: Run) -> dict[str, float]:
        data = moons_or(self.data).to(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        flow = transform_of(model)
        evaluations = Evaluations(flow)
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            warming.step()
            run.log(step, loss=loss, evaluations=evaluations.since())

        truth = moons_log_prob if self.data == "moons" else None
        with torch.no_grad():
            flow.tolerance = 1e-5
            evaluations.since()
            numbers = likelihood(model, data.test.x[:2_000], truth)
            needed = evaluations.since()
            mass = show_density(run, model, data, self.grid, truth)
            x = model.sample(500)
            again, _ = flow(flow.inverse(x)[0])
            show_paths(run, flow, data.test.x)
            return {
                **numbers,
                "mass": mass,
                "round_trip": float((again - x).abs().max()),
                "evaluations": needed,
                **self.estimate_traces(run, model, data.test.x[:50]),
            }

    def estimate_traces(self, run: Run, model: Flow, x: Tensor) -> dict[str, float]:
        """The density with one random direction for each trace, against the exact one."""
        flow, exact = transform_of(model), model.log_prob(x)
        counts = [1, 2, 4, 8, 16]
        spreads = []
        for count in counts:
            flow.directions = partial(random_signs, count=count)
            found = model.log_prob(x.repeat(self.draws, 1)).view(self.draws, -1)
            spreads.append(float(found.std(0).mean()))
            if count == 1:
                off = (found - exact).mean(1)
        flow.directions = unit_directions
        ideal = [spreads[0] / count**0.5 for count in counts]
        figure = curves(
            {"measured": (counts, spreads), "as 1/√count": (counts, ideal)},
            x_label="random directions", y_label="spread of a log-density in nats", log_x=True, log_y=True,
        )  # fmt: skip
        run.figure(
            "traces",
            figure,
            "Traces from random signs instead of all coordinates: no bias, and noise that falls with their number. In "
            "the plane two exact products do the same; in a thousand dimensions they would be a thousand.",
        )
        return {
            "spread_of_one_sign": spreads[0],
            "bias_of_one_sign": float(off.mean()) / (float(off.std()) / self.draws**0.5),
        }


@dataclass(frozen=True)
class Sample:
    count: int = 2_000  # how many points

    def __call__(self, model: Flow) -> Tensor:
        return model.sample(self.count)


class Evaluations:
    """How often the field of a flow was asked since one last looked."""

    def __init__(self, flow: ContinuousTransform) -> None:
        self._count = 0
        flow.field.register_forward_hook(self._seen)

    def since(self) -> float:
        count, self._count = self._count, 0
        return float(count)

    def _seen(self, *_: object) -> None:
        self._count += 1


def transform_of(model: Flow) -> ContinuousTransform:
    assert isinstance(model.transform, ContinuousTransform)
    return model.transform


def show_paths(run: Run, flow: ContinuousTransform, real: Tensor) -> None:
    """A cloud of noise at five moments, and the ways of some of its points."""
    noise = torch.randn(2_000, 2, device=run.device)
    states = flow.path(noise, MOMENTS).cpu().numpy()
    colour = (noise[:, 0].argsort().argsort().float() / len(noise)).cpu().numpy()
    figure, axes = subplots(1, len(MOMENTS), size=(11.5, 2.7))
    for ax, cloud, t in zip(axes[0], states, MOMENTS, strict=True):
        ax.scatter(cloud[:, 0], cloud[:, 1], s=2, c=colour, cmap="viridis", linewidths=0, rasterized=True)
        ax.set(title=f"t = {t:g}", xticks=[], yticks=[])
    run.figure(
        "moments", figure, "Noise becomes moons; a point keeps the colour that it has at t = 0, from left to right."
    )

    times = torch.linspace(0, 1, 60).tolist()
    lines = flow.path(noise[:40], times).cpu()
    figure, axes = subplots(size=(7.6, 4.2))
    ax, cloud = axes[0, 0], real[:2_000].cpu()
    ax.scatter(cloud[:, 0], cloud[:, 1], s=3, color=FAINT, linewidths=0, rasterized=True)
    for number in range(lines.shape[1]):
        line = lines[:, number]
        ax.plot(line[:, 0], line[:, 1], color=PALETTE[0], linewidth=0.9, alpha=0.8)
    ax.scatter(lines[0, :, 0], lines[0, :, 1], s=14, color=PALETTE[4], zorder=3, label="t = 0, noise")
    ax.scatter(lines[-1, :, 0], lines[-1, :, 1], s=14, color=PALETTE[1], zorder=3, label="t = 1, samples")
    ax.set_aspect("equal")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    run.figure(
        "paths",
        figure,
        "Forty ways from noise to data, over the data in grey. Lines may cross in this picture, where time is not "
        "seen; two points are never at one place at the same time.",
    )
