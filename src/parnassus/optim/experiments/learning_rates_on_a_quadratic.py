"""How large may a learning rate be? Descent, a rate finder and a 1cycle on a bowl (book sec. 1.3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.optim import RateCurve, find_rate, gradient_descent, one_cycle_momentum, one_cycle_rate
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B1.3-4", "B1.3-9", "B1.3-11", "B1.3-12")
expected = {
    "border_times_half_beta": between(0.999, 1.001, "largest rate that still descends, times β/2"),
    "finder_round_bowl": between(0.8, 1.0, "rate that the finder calls safe, times β/2, with one curvature"),
    "finder_uneven_bowl": between(1.0, 10.0, "the same with two curvatures"),
    "finder_noisy_bowl": between(0.03, 2.0, "the same with noisy batches"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 60}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    largest: float = 4.0  # largest curvature β of the bowl ½ Σ β_i θ_i²
    smallest: float = 0.1  # smallest curvature
    steps: int = 200  # steps of gradient descent

    def __call__(self, run: Run) -> dict[str, float]:
        beta = torch.tensor([self.largest, self.smallest], dtype=torch.float64)
        border = 2 / self.largest

        def bowl(theta: Tensor) -> Tensor:
            return (beta * theta.square()).sum() / 2

        def losses(rate: float, steps: int = self.steps) -> Tensor:
            path = gradient_descent(bowl, torch.ones(2, dtype=torch.float64), rate=rate, steps=steps)
            return torch.stack([bowl(theta) for theta in path])

        step = range(self.steps + 1)
        shown = {f"η = {share:g} · 2/β": (step, losses(share * border)) for share in (0.02, 0.2, 0.9, 0.99, 1.01)}
        figure = curves(shown, x_label="step", y_label="loss", log_y=True)
        run.figure("loss for five rates", figure, "Small rates are slow; past 2/β the loss grows without end.")

        low, high = 0.0, 2 * border
        for _ in range(12):  # bisection: does the last step still lower the loss?
            middle = (low + high) / 2
            tail = losses(middle, 200)[-2:]
            low, high = (middle, high) if tail[1] < tail[0] else (low, middle)

        found = {
            "one curvature": find_on(torch.full((2,), self.largest, dtype=torch.float64), noise=0.0),
            "two curvatures": find_on(beta, noise=0.0),
            "two curvatures, noisy batches": find_on(beta, noise=1.0),
        }
        run.figure(
            "the rate finder",
            finder_figure(found, border),
            "The rate grows with every step until the loss worsens. Left: the loss before each step. Right: the factor "
            "by which a step changes it; with one curvature that is (1 − ηβ)², which passes 1 at 2/β.",
        )
        run.figure("1cycle", rate_and_momentum(1_000), "Rate and momentum of a 1cycle over 1,000 steps with peak 0.01.")
        safe = {name: curve.safe / border for name, curve in found.items()}
        run.note(
            "what to see",
            f"The border is at {low / border:.4f} times 2/β. The finder ends at {safe['one curvature']:.2f} of it with "
            f"one curvature and at {safe['two curvatures']:.2f} with two: by the time the rate is too large, the steep "
            "direction has come to rest and must first grow back. Noise in the batches keeps it awake, and the finder "
            f"ends at {safe['two curvatures, noisy batches']:.2f}.",
        )
        return {
            "border_times_half_beta": low / border,
            "finder_round_bowl": safe["one curvature"],
            "finder_uneven_bowl": safe["two curvatures"],
            "finder_noisy_bowl": safe["two curvatures, noisy batches"],
        }


def find_on(beta: Tensor, *, noise: float) -> RateCurve:
    """The finder's walk on ½ Σ β_i (θ_i − ε_i)², whose minimum each batch moves by noise ε."""
    theta = nn.Parameter(torch.full_like(beta, 10.0))

    def batch_loss() -> Tensor:
        return (beta * (theta - noise * torch.randn_like(beta)).square()).sum() / 2

    return find_rate([theta], batch_loss, lowest=1e-4, highest=100.0, steps=120, smoothing=0.8 if noise else 0.0)


def finder_figure(found: dict[str, RateCurve], border: float) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    for (name, curve), colour in zip(found.items(), PALETTE, strict=False):
        axes[0, 0].loglog(curve.rates, curve.losses, color=colour, label=name)
        if "noisy" not in name:  # from one noisy batch to the next the factor says nothing
            axes[0, 1].loglog(curve.rates[:-1], curve.losses[1:] / curve.losses[:-1], color=colour)
    for ax in axes[0]:
        ax.axvline(border, color=INK, linestyle="--", linewidth=1)
        ax.annotate("2/β", (border, 1), xycoords=("data", "axes fraction"), xytext=(4, -10), textcoords="offset points")
        ax.set_xlabel("learning rate")
    axes[0, 0].set(title="loss", ylim=(1e-3, 1e3))
    axes[0, 1].set(title="factor of one step", ylim=(1e-3, 1e3))
    axes[0, 1].axhline(1, color=FAINT, linewidth=1)
    axes[0, 0].legend(loc="lower left")
    return figure


def rate_and_momentum(steps: int) -> "Figure":
    step = range(steps)
    figure, axes = subplots(1, 2, size=(9.0, 3.2))
    axes[0, 0].plot(step, [one_cycle_rate(t, steps, peak=0.01) for t in step], color=PALETTE[0])
    axes[0, 1].plot(step, [one_cycle_momentum(t, steps) for t in step], color=PALETTE[1])
    axes[0, 0].set(xlabel="step", title="learning rate")
    axes[0, 1].set(xlabel="step", title="momentum")
    return figure
