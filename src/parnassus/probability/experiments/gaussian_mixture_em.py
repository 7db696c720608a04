"""EM recovers a Gaussian mixture from samples, depending on its initialisation (Diehl ex. 6.3)."""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.probability import GaussianMixture, UnconstrainedMixture, em_iterates, kmeans_plus_plus_start
from parnassus.probability.inference.gaussian_mixture import five_gaussians
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.report.style import rgb
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D6.0.7", "B6.1-14")
expected = {
    "max_log_likelihood_decrease": at_most(1e-6, "maximum decrease of the mean log-likelihood in an EM step"),
    "best_fit_minus_truth": between(
        -0.1, 0.02, "mean test log-likelihood of the best fit minus that of the true mixture"
    ),
    "fraction_of_starts_near_best": between(0.1, 1.0, "fraction of starts that end within 0.01 nats of the best"),
    "worst_minus_best_start": at_most(
        -0.01, "final mean log-likelihood of the worst start minus that of the best start"
    ),
    "gradient_descent_minus_em": between(
        -0.4, 0.01, "final mean log-likelihood of gradient descent minus that of EM, same start"
    ),
    "selected_components": between(5, 8, "number of components with the highest test log-likelihood"),
    "max_weight_error": at_most(0.06, "maximum error of the mixture weights of the best fit"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"max_iter": 8, "num_starts": 3, "num_points": 150, "max_components": 5},
    "gpu": {},
}


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 600  # training points
    max_iter: Positive[int] = 80  # steps of EM and of gradient descent
    num_starts: Positive[int] = 16  # random initialisations of EM
    learning_rate: Positive[float] = 0.1  # learning rate of Adam, for the comparison
    max_components: Positive[int] = 10  # maximum number of components compared

    def __call__(self, run: Run) -> dict[str, float]:
        truth = five_gaussians()
        x, test = truth.sample(self.num_points), truth.sample(10_000)
        components = len(truth.weights)
        run.figure("mixture densities", plot_density(truth, x), DENSITIES)

        paths, log_likelihoods = [], []
        for seed in range(self.num_starts):
            start = kmeans_plus_plus_start(x, components, seed=self.num_starts * run.seed + seed)
            paths.append(list(islice(em_iterates(x, start), self.max_iter + 1)))
            log_likelihoods.append([float(mixture.log_prob(x).mean()) for mixture in paths[-1]])
        curves_of_starts = np.array(log_likelihoods)
        best = int(curves_of_starts[:, -1].argmax())
        run.figure("EM steps", plot_steps(paths[best], x), STEPS)
        run.figure(
            "log-likelihood of all starts", plot_starts(curves_of_starts, float(truth.log_prob(x).mean())), STARTS
        )
        worst = int(curves_of_starts[:, -1].argmin())
        run.figure("best and worst start", plot_ends(paths[best][-1], paths[worst][-1], x), ENDS)

        descent = self.descend(run, paths[best][0], x)
        lines = {
            "EM": (range(self.max_iter + 1), curves_of_starts[best]),
            "gradient descent (Adam)": (range(self.max_iter), descent),
        }
        run.figure(
            "EM and gradient descent",
            curves(lines, x_label="step", y_label="mean log-likelihood"),
            "From the same start. EM has no learning rate and never decreases the likelihood; gradient descent may "
            "reach another local maximum.",
        )

        sizes = range(1, self.max_components + 1)
        fits = [GaussianMixture.fit(x, size, steps=self.max_iter, seed=run.seed) for size in sizes]
        train = [float(fit.log_prob(x).mean()) for fit in fits]
        held_out = [float(fit.log_prob(test).mean()) for fit in fits]
        chosen = sizes[int(np.argmax(held_out))]
        run.figure(
            "number of components",
            curves(
                {"training points": (sizes, train), "test points": (sizes, held_out)},
                x_label="components",
                y_label="mean log-likelihood",
                marks={f"true number: {components}": components},
            ),
            "The training likelihood grows with the number of components; the test likelihood shows overfitting.",
        )

        fitted = paths[best][-1]
        nearest = torch.cdist(truth.means, fitted.means).argmin(1)
        weights_error = float((fitted.weights[nearest] - truth.weights).abs().max())
        run.table(
            "components", components_table(truth, fitted, nearest), "True components and the nearest fitted ones."
        )
        ends = curves_of_starts[:, -1] - curves_of_starts[best, -1]
        run.note(
            "results",
            f"Every EM step increases the likelihood, but the local maximum reached depends on the start: "
            f"{np.mean(ends > -0.01):.0%} of {self.num_starts} starts reach the best one, the worst ends "
            f"{-ends.min():.2f} nats per point below. Typically one component then covers two true components while "
            "two others share one.",
        )
        return {
            "max_log_likelihood_decrease": float(-np.diff(curves_of_starts, axis=1).min().clip(max=0)),
            "best_fit_minus_truth": float((fitted.log_prob(test) - truth.log_prob(test)).mean()),
            "fraction_of_starts_near_best": float(np.mean(ends > -0.01)),
            "worst_minus_best_start": float(ends.min()),
            "gradient_descent_minus_em": descent[-1] - float(curves_of_starts[best, -1]),
            "selected_components": float(chosen),
            "max_weight_error": weights_error,
        }

    def descend(self, run: Run, start: GaussianMixture, x: Tensor) -> list[float]:
        """The mean log-likelihood before each step of Adam."""
        x = x.to(run.device)
        model, optimizer = run.prepare(UnconstrainedMixture(start), partial(Adam, lr=self.learning_rate))
        for step, _ in run.steps(self.max_iter):
            loss = model.loss(x)
            run.update(optimizer, loss)
            run.record(step, log_likelihood=-loss.detach())
        return run.curve("log_likelihood")[1]


DENSITIES = (
    "Left: a one-dimensional mixture of three Gaussians with its weighted components. Right: contours of the true "
    "two-dimensional mixture density, and the training points."
)
STEPS = (
    "The best start. Ellipses show two standard deviations; the colour of a point mixes those of the components by "
    "their responsibilities. The title gives the mean log-likelihood."
)
STARTS = "Mean log-likelihood of the training points, one curve per start. No curve decreases; the final values differ."
ENDS = "Final mixtures of the best and the worst start. Both are fixed points of EM."


def plot_density(truth: GaussianMixture, x: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 4.2))
    line = torch.linspace(-5, 6, 400, dtype=torch.float64)[:, None]
    mixture = GaussianMixture(
        torch.tensor([0.3, 0.5, 0.2], dtype=torch.float64),
        torch.tensor([[-2.0], [0.8], [3.5]], dtype=torch.float64),
        torch.tensor([0.5, 1.0, 0.15], dtype=torch.float64)[:, None, None],
    )
    for component, colour in zip(mixture.log_joint(line).exp().T, PALETTE[1:], strict=False):
        axes[0, 0].fill_between(line[:, 0], component, color=colour, alpha=0.3, linewidth=0)
    axes[0, 0].plot(line[:, 0], mixture.log_prob(line).exp(), color=INK)
    axes[0, 0].set(xlabel="x", ylabel="density")
    ax = axes[0, 1]
    ax.scatter(x[:, 0], x[:, 1], s=5, color=FAINT, linewidths=0, rasterized=True)
    x_axis, y_axis = (torch.linspace(float(c.min()) - 0.5, float(c.max()) + 0.5, 121, dtype=torch.float64) for c in x.T)
    points = torch.cartesian_prod(x_axis, y_axis)
    density = truth.log_prob(points).exp().view(121, 121).T
    ax.contour(x_axis, y_axis, density, levels=np.geomspace(0.002, 0.3, 9), colors=PALETTE[0], linewidths=1.0)
    set_plane_axes(ax)
    return figure


def plot_steps(path: list[GaussianMixture], x: Tensor) -> "Figure":
    last = len(path) - 1
    steps = sorted({0, 1, min(3, last), min(8, last), min(20, last), last})
    figure, axes = subplots(-(-len(steps) // 3), 3, size=(10.0, 6.4 if len(steps) > 3 else 3.4))
    for ax, step in zip(axes.flat, steps, strict=False):
        plot_mixture(ax, path[step], x)
        ax.set_title(f"step {step}: {float(path[step].log_prob(x).mean()):.3f}")
    for ax in list(axes.flat)[len(steps) :]:
        ax.set_visible(False)
    return figure


def plot_ends(best: GaussianMixture, worst: GaussianMixture, x: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.0, 4.0))
    for ax, name, mixture in ((axes[0, 0], "best", best), (axes[0, 1], "worst", worst)):
        plot_mixture(ax, mixture, x)
        ax.set_title(f"{name} start: {float(mixture.log_prob(x).mean()):.3f}")
    return figure


def plot_starts(curves_of_starts: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", truth: float) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    for curve in curves_of_starts:
        ax.plot(curve, color=PALETTE[0], alpha=0.55, linewidth=1.2)
    ax.axhline(truth, color=PALETTE[1], linestyle="--", linewidth=1.2, label="true mixture")
    ax.set(xlabel="EM step", ylabel="mean log-likelihood")
    ax.legend(loc="lower right")
    return figure


def plot_mixture(ax: "Axes", mixture: GaussianMixture, x: Tensor) -> None:
    """Plot the points coloured by responsibilities, and the components as ellipses."""
    ink = torch.tensor([rgb(colour) for colour in PALETTE]).double() / 255
    colours = ink[torch.arange(len(mixture.weights)) % len(ink)]
    mixed = (mixture.responsibilities(x) @ colours).clamp(0, 1)
    ax.scatter(x[:, 0], x[:, 1], s=6, c=mixed.numpy(), linewidths=0, rasterized=True)
    for ellipse, mean, colour in zip(mixture.ellipses(), mixture.means, colours, strict=True):
        ax.plot(ellipse[:, 0], ellipse[:, 1], color=tuple(colour.tolist()), linewidth=1.6)
        ax.plot(*mean, "+", color=INK, markersize=7)
    limit = 1.05 * float(x.abs().max())
    set_plane_axes(ax)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit))


def set_plane_axes(ax: "Axes") -> None:
    ax.set_aspect("equal")
    ax.set(xlabel="x₁", ylabel="x₂")


def components_table(truth: GaussianMixture, fitted: GaussianMixture, nearest: Tensor) -> list[dict[str, str | float]]:
    return [
        {
            "true weight": float(truth.weights[i]),
            "fitted weight": float(fitted.weights[j]),
            "true mean": f"({truth.means[i, 0]:.2f}, {truth.means[i, 1]:.2f})",
            "fitted mean": f"({fitted.means[j, 0]:.2f}, {fitted.means[j, 1]:.2f})",
        }
        for i, j in enumerate(nearest.tolist())
    ]
