"""Learning rates on a quadratic: stability limit 2/β, learning-rate finder and 1cycle schedule (book sec. 1.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.optim import LearningRateCurve, find_learning_rate, gradient_descent, one_cycle_momentum, one_cycle_rate
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B1.3-4", "B1.3-9", "B1.3-11", "B1.3-12")
expected = {
    "stability_limit": between(0.999, 1.001, "largest stable learning rate, multiplied by β/2"),
    "finder_one_curvature": between(
        0.8, 1.0, "learning rate suggested by the finder, multiplied by β/2, one curvature"
    ),
    "finder_two_curvatures": between(
        1.0, 10.0, "learning rate suggested by the finder, multiplied by β/2, two curvatures"
    ),
    "finder_noisy_batches": between(
        0.03, 2.0, "learning rate suggested by the finder, multiplied by β/2, two curvatures and noisy batches"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 60}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    max_curvature: Positive[float] = 4.0  # largest curvature β of the quadratic ½ Σ β_i θ_i²
    min_curvature: Positive[float] = 0.1  # smallest curvature
    steps: Positive[int] = 200  # steps of gradient descent

    def __call__(self, run: Run) -> dict[str, float]:
        beta = torch.tensor([self.max_curvature, self.min_curvature], dtype=torch.float64)
        limit = 2 / self.max_curvature

        def quadratic(theta: Tensor) -> Tensor:
            return (beta * theta.square()).sum() / 2

        def losses(rate: float, steps: int = self.steps) -> Tensor:
            path = gradient_descent(quadratic, torch.ones(2, dtype=torch.float64), learning_rate=rate, steps=steps)
            return torch.stack([quadratic(theta) for theta in path])

        step = range(self.steps + 1)
        fractions = (0.02, 0.2, 0.9, 0.99, 1.01)
        lines = {f"η = {fraction:g} · 2/β": (step, losses(fraction * limit)) for fraction in fractions}
        figure = curves(lines, x_label="step", y_label="loss", log_y=True)
        run.figure("loss at five learning rates", figure, "Small rates converge slowly; above 2/β the loss diverges.")

        low, high = 0.0, 2 * limit
        for _ in range(12):  # bisection: a rate is stable if the last step lowers the loss
            middle = (low + high) / 2
            tail = losses(middle, 200)[-2:]
            low, high = (middle, high) if tail[1] < tail[0] else (low, middle)

        finder_curves = {
            "one curvature": run_finder(torch.full((2,), self.max_curvature, dtype=torch.float64), noise=0.0),
            "two curvatures": run_finder(beta, noise=0.0),
            "two curvatures, noisy batches": run_finder(beta, noise=1.0),
        }
        run.figure(
            "learning-rate finder",
            plot_finder(finder_curves, limit),
            "The learning rate grows with every step until the loss diverges. Left: the loss before each step. Right: "
            "the factor by which a step changes it; with one curvature it is (1 − ηβ)², which exceeds 1 above 2/β.",
        )
        run.figure("1cycle", plot_one_cycle(1_000), "Learning rate and momentum of 1cycle, 1,000 steps, peak 0.01.")
        suggestions = {name: curve.suggestion / limit for name, curve in finder_curves.items()}
        run.note(
            "results",
            f"The largest stable rate is {low / limit:.4f} times 2/β. The finder suggests "
            f"{suggestions['one curvature']:.2f} of it with one curvature and {suggestions['two curvatures']:.2f} with "
            "two: when the rate becomes too large, the direction of high curvature has converged and must first grow "
            "again. Noisy batches prevent this convergence, and the finder suggests "
            f"{suggestions['two curvatures, noisy batches']:.2f}.",
        )
        return {
            "stability_limit": low / limit,
            "finder_one_curvature": suggestions["one curvature"],
            "finder_two_curvatures": suggestions["two curvatures"],
            "finder_noisy_batches": suggestions["two curvatures, noisy batches"],
        }


def run_finder(beta: Tensor, *, noise: float) -> LearningRateCurve:
    """The finder on ½ Σ β_i (θ_i − ε_i)², whose minimum is shifted by noise ε in each batch."""
    theta = nn.Parameter(torch.full_like(beta, 10.0))

    def batch_loss() -> Tensor:
        return (beta * (theta - noise * torch.randn_like(beta)).square()).sum() / 2

    return find_learning_rate(
        [theta], batch_loss, min_rate=1e-4, max_rate=100.0, steps=120, smoothing=0.8 if noise else 0.0
    )


def plot_finder(finder_curves: dict[str, LearningRateCurve], limit: float) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for (name, curve), colour in zip(finder_curves.items(), PALETTE, strict=False):
        axes[0, 0].loglog(curve.rates, curve.losses, color=colour, label=name)
        if "noisy" not in name:  # between noisy batches the factor is meaningless
            axes[0, 1].loglog(curve.rates[:-1], curve.losses[1:] / curve.losses[:-1], color=colour)
    for ax in axes[0]:
        ax.axvline(limit, color=INK, linestyle="--", linewidth=1)
        ax.annotate("2/β", (limit, 1), xycoords=("data", "axes fraction"), xytext=(4, -10), textcoords="offset points")
        ax.set_xlabel("learning rate")
    axes[0, 0].set(title="loss", ylim=(1e-3, 1e3))
    axes[0, 1].set(title="factor of one step", ylim=(1e-3, 1e3))
    axes[0, 1].axhline(1, color=FAINT, linewidth=1)
    axes[0, 0].legend(loc="lower left")
    return figure


def plot_one_cycle(steps: int) -> "Figure":
    step = range(steps)
    figure, axes = subplots(1, 2, size=(9.0, 3.2))
    axes[0, 0].plot(step, [one_cycle_rate(t, steps, peak=0.01) for t in step], color=PALETTE[0])
    axes[0, 1].plot(step, [one_cycle_momentum(t, steps) for t in step], color=PALETTE[1])
    axes[0, 0].set(xlabel="step", title="learning rate")
    axes[0, 1].set(xlabel="step", title="momentum")
    return figure
