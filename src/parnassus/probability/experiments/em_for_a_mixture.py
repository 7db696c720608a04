"""Expectation-maximisation finds the bells that points were drawn from, if it starts well (Diehl ex. 6.3)."""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.probability import FreeMixture, GaussianMixture, em_path, spread_start
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D6.0.7", "B6.1-14")
expected = {
    "largest_fall": at_most(1e-6, "most that a step of EM lowered the mean log-likelihood"),
    "best_minus_truth": between(-0.1, 0.02, "mean log-likelihood of fresh draws: best fit less true mixture"),
    "starts_near_the_best": between(0.1, 1.0, "share of starts that end within 0.01 nats of the best"),
    "worst_start": at_most(-0.01, "mean log-likelihood where the worst start ends, less where the best does"),
    "descent_minus_em": between(-0.4, 0.01, "log-likelihood after gradient descent less after EM, same start"),
    "components_chosen": between(5, 8, "number of components with the highest likelihood on fresh draws"),
    "weights_error": at_most(0.06, "largest error of a weight of the best fit"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 8, "starts": 3, "rows": 150, "most": 5}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    rows: int = 600  # points drawn from the true mixture
    steps: int = 80  # steps of EM, and of gradient descent
    starts: int = 16  # random starts of EM
    rate: float = 0.1  # learning rate of Adam for comparison
    most: int = 10  # components tried

    def __call__(self, run: Run) -> dict[str, float]:
        truth = five_bells()
        x, fresh = truth.sample(self.rows), truth.sample(10_000)
        components = len(truth.weights)
        run.figure("densities with several peaks", peaks_figure(truth, x), PEAKS)

        paths, heights = [], []
        for seed in range(self.starts):
            start = spread_start(x, components, seed=self.starts * run.seed + seed)
            paths.append(list(islice(em_path(x, start), self.steps + 1)))
            heights.append([float(mixture.log_prob(x).mean()) for mixture in paths[-1]])
        climbs = np.array(heights)
        best = int(climbs[:, -1].argmax())
        run.figure("step by step", steps_figure(paths[best], x), STEPS)
        run.figure("likelihood of every start", climbs_figure(climbs, float(truth.log_prob(x).mean())), CLIMBS)
        worst = int(climbs[:, -1].argmin())
        run.figure("the best and the worst start", ends_figure(paths[best][-1], paths[worst][-1], x), ENDS)

        descent = self.descend(run, paths[best][0], x)
        both = {"EM": (range(self.steps + 1), climbs[best]), "gradient descent (Adam)": (range(self.steps), descent)}
        run.figure(
            "EM beside gradient descent",
            curves(both, x_label="step", y_label="mean log-likelihood"),
            "From the same start. EM has no learning rate to choose and never falls; descent may find another summit.",
        )

        sizes = range(1, self.most + 1)
        fits = [GaussianMixture.fit(x, size, steps=self.steps, seed=run.seed) for size in sizes]
        seen = [float(fit.log_prob(x).mean()) for fit in fits]
        unseen = [float(fit.log_prob(fresh).mean()) for fit in fits]
        chosen = sizes[int(np.argmax(unseen))]
        run.figure(
            "how many components",
            curves(
                {"the points fitted": (sizes, seen), "fresh draws": (sizes, unseen)},
                x_label="components",
                y_label="mean log-likelihood",
                marks={f"{components} are true": components},
            ),
            "More components fit the points at hand better; fresh draws tell when that stops being knowledge.",
        )

        found = paths[best][-1]
        nearest = torch.cdist(truth.means, found.means).argmin(1)
        weights_error = float((found.weights[nearest] - truth.weights).abs().max())
        run.table("the bells", bells_table(truth, found, nearest), "True and found, each beside the nearest.")
        ends = climbs[:, -1] - climbs[best, -1]
        run.note(
            "what to see",
            f"Every step raises the likelihood, but starts differ in where that leads: {np.mean(ends > -0.01):.0%} of "
            f"{self.starts} starts reach the best end, the worst stays {-ends.min():.2f} nats a point below it. There "
            "one component covers two bells while two share one, and no small change improves that.",
        )
        return {
            "largest_fall": float(-np.diff(climbs, axis=1).min().clip(max=0)),
            "best_minus_truth": float((found.log_prob(fresh) - truth.log_prob(fresh)).mean()),
            "starts_near_the_best": float(np.mean(ends > -0.01)),
            "worst_start": float(ends.min()),
            "descent_minus_em": descent[-1] - float(climbs[best, -1]),
            "components_chosen": float(chosen),
            "weights_error": weights_error,
        }

    def descend(self, run: Run, start: GaussianMixture, x: Tensor) -> list[float]:
        """The mean log-likelihood before each step of Adam."""
        x = x.to(run.device)
        model, optimizer = run.prepare(FreeMixture(start), partial(Adam, lr=self.rate))
        for step, _ in run.steps(self.steps):
            loss = model.loss(x)
            run.update(optimizer, loss)
            run.record(step, log_likelihood=-loss.detach())
        return run.curve("log_likelihood")[1]


PEAKS = (
    "Left: a mixture of three bells on the line, and each bell with its weight. Right: the true mixture in the plane "
    "as level lines of its density, with the points drawn from it."
)
STEPS = (
    "The best start. Ellipses are two standard deviations; a point has the colours of the components that answer for "
    "it, mixed by their responsibilities. The title has the mean log-likelihood."
)
CLIMBS = "Mean log-likelihood of the points, a line for each start. No line falls; not all end at the same height."
ENDS = "Where the best and the worst start end. Both are places that EM does not leave."


def five_bells() -> GaussianMixture:
    """Five bells of different weight, size and tilt."""
    means = torch.tensor([[-3.0, 2.0], [-2.0, -2.0], [0.5, 0.5], [3.0, 2.5], [3.0, -2.0]], dtype=torch.float64)
    deviations = torch.tensor([[0.9, 0.5], [1.1, 0.4], [0.4, 0.4], [0.5, 1.0], [1.0, 0.6]], dtype=torch.float64)
    angle = torch.tensor([0.6, -0.4, 0.0, 0.3, 0.9], dtype=torch.float64)
    turn = torch.stack([torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)], 1)
    covariances = turn @ torch.diag_embed(deviations.square()) @ turn.mT
    return GaussianMixture(torch.tensor([0.25, 0.2, 0.1, 0.2, 0.25], dtype=torch.float64), means, covariances)


def peaks_figure(truth: GaussianMixture, x: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 4.2))
    line = torch.linspace(-5, 6, 400, dtype=torch.float64)[:, None]
    bells = GaussianMixture(
        torch.tensor([0.3, 0.5, 0.2], dtype=torch.float64),
        torch.tensor([[-2.0], [0.8], [3.5]], dtype=torch.float64),
        torch.tensor([0.5, 1.0, 0.15], dtype=torch.float64)[:, None, None],
    )
    for bell, colour in zip(bells.log_joint(line).exp().T, PALETTE[1:], strict=False):
        axes[0, 0].fill_between(line[:, 0], bell, color=colour, alpha=0.3, linewidth=0)
    axes[0, 0].plot(line[:, 0], bells.log_prob(line).exp(), color=INK)
    axes[0, 0].set(xlabel="x", ylabel="density")
    ax = axes[0, 1]
    ax.scatter(x[:, 0], x[:, 1], s=5, color=FAINT, linewidths=0, rasterized=True)
    across, up = (torch.linspace(float(c.min()) - 0.5, float(c.max()) + 0.5, 121, dtype=torch.float64) for c in x.T)
    places = torch.cartesian_prod(across, up)
    density = truth.log_prob(places).exp().view(121, 121).T
    ax.contour(across, up, density, levels=np.geomspace(0.002, 0.3, 9), colors=PALETTE[0], linewidths=1.0)
    plane(ax)
    return figure


def steps_figure(path: list[GaussianMixture], x: Tensor) -> "Figure":
    last = len(path) - 1
    shown = sorted({0, 1, min(3, last), min(8, last), min(20, last), last})
    figure, axes = subplots(-(-len(shown) // 3), 3, size=(10.0, 6.4 if len(shown) > 3 else 3.4))
    for ax, step in zip(axes.flat, shown, strict=False):
        draw(ax, path[step], x)
        ax.set_title(f"step {step}: {float(path[step].log_prob(x).mean()):.3f}")
    for ax in list(axes.flat)[len(shown) :]:
        ax.set_visible(False)
    return figure


def ends_figure(best: GaussianMixture, worst: GaussianMixture, x: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.0, 4.0))
    for ax, name, mixture in ((axes[0, 0], "best", best), (axes[0, 1], "worst", worst)):
        draw(ax, mixture, x)
        ax.set_title(f"{name} end: {float(mixture.log_prob(x).mean()):.3f}")
    return figure


def climbs_figure(climbs: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", truth: float) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    for climb in climbs:
        ax.plot(climb, color=PALETTE[0], alpha=0.55, linewidth=1.2)
    ax.axhline(truth, color=PALETTE[1], linestyle="--", linewidth=1.2, label="the true mixture")
    ax.set(xlabel="step of EM", ylabel="mean log-likelihood")
    ax.legend(loc="lower right")
    return figure


def draw(ax: "Axes", mixture: GaussianMixture, x: Tensor) -> None:
    """The points in the mixed colours of those who answer for them, and the components as ellipses."""
    ink = torch.tensor([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in PALETTE]).double()
    colours = ink[torch.arange(len(mixture.weights)) % len(ink)]
    mixed = (mixture.responsibilities(x) @ colours).clamp(0, 1)
    ax.scatter(x[:, 0], x[:, 1], s=6, c=mixed.numpy(), linewidths=0, rasterized=True)
    for outline, mean, colour in zip(mixture.outlines(), mixture.means, colours, strict=True):
        ax.plot(outline[:, 0], outline[:, 1], color=tuple(colour.tolist()), linewidth=1.6)
        ax.plot(*mean, "+", color=INK, markersize=7)
    reach = 1.05 * float(x.abs().max())
    plane(ax)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))


def plane(ax: "Axes") -> None:
    ax.set_aspect("equal")
    ax.set(xlabel="x₁", ylabel="x₂")


def bells_table(truth: GaussianMixture, found: GaussianMixture, nearest: Tensor) -> list[dict[str, str | float]]:
    return [
        {
            "true weight": float(truth.weights[i]),
            "found weight": float(found.weights[j]),
            "true mean": f"({truth.means[i, 0]:.2f}, {truth.means[i, 1]:.2f})",
            "found mean": f"({found.means[j, 0]:.2f}, {found.means[j, 1]:.2f})",
        }
        for i, j in enumerate(nearest.tolist())
    ]
