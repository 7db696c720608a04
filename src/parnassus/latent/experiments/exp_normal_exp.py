"""A bound one can solve by hand: its peak is not the likeliest model (Diehl ex. 6.7)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.latent.exp_normal_exp import (
    HALF_LOG_2PI,
    best_phi,
    elbo,
    elbo_gradient,
    elbo_maximiser,
    likeliest_theta,
    log_evidence,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D6.0.12", "D6.0.13", "D6.0.14")
expected = {
    "theta_times_x": between(1.999, 2.001, "x θ where ascent on the bound ends; printed as 1"),
    "peak_error": at_most(1e-4, "nats between the bound reached and −½ log 2π − x²/4"),
    "likeliest_theta_times_x": between(1.2, 1.8, "x θ of the likeliest model"),
    "evidence_lost": at_least(0.005, "nats of log-evidence given up by following the bound"),
    "gap_at_peak": at_least(0.02, "nats between evidence and bound at the peak of the bound"),
    "rise_at_negative_x": at_least(0.0, "least rise of the bound between two rates for x = −1, where it has no peak"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 50}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    x: float = 2.0  # what was observed, a positive number
    steps: int = 1_000  # steps of gradient ascent in (log θ, log ϕ)
    rate: float = 0.2  # its learning rate, over 1 + x²/4

    def __call__(self, run: Run) -> dict[str, float]:
        path = self.ascend(torch.tensor([5.0 / self.x, 0.6 / self.x], dtype=torch.float64).log())
        peak, likeliest = elbo_maximiser(self.x), likeliest_theta(self.x)
        run.figure(
            "the bound",
            contours(self.x, path.exp(), likeliest),
            "L(θ, ϕ; x) by colour, with gradient ascent from the dot to the peak at θ = ϕ = 2/x (star). The cross is "
            "at 1/x, where the notes have the maximum; the dashed line is the θ under which x is likeliest.",
        )
        run.figure(
            "evidence and bound",
            evidence_and_bound((1.0, 2.0, 3.5)),
            "log p_θ(x) and the bound with the best ϕ for every θ. The bound lies below and, as Exp(ϕ) has the wrong "
            "shape, by a gap that depends on θ: its peak (star) is not at the likeliest θ (dot).",
        )
        run.figure(
            "no peak",
            no_peak((-1.0, 0.0, 1.0)),
            "The bound with the best ϕ, less its limit −½ log 2π − x²/2 for θ → ∞. For x ≤ 0 it rises to the limit and "
            "never arrives: the code vanishes at 0. For x > 0 it passes the limit and comes back from above.",
        )
        run.table("three observations", [row(x) for x in (1.0, 2.0, 3.5)], "Rates, bounds and evidence in nats.")

        reached = path[-1].exp()
        theta = torch.logspace(-1, 3, 80, dtype=torch.float64)
        negative = elbo(theta, best_phi(theta, -1.0), -1.0)
        top = torch.tensor([peak, likeliest], dtype=torch.float64)
        evidence = log_evidence(top, self.x)
        bound = float(elbo(reached[0], reached[1], self.x))
        return {
            "theta_times_x": float(reached[0]) * self.x,
            "peak_error": abs(bound + HALF_LOG_2PI + self.x**2 / 4),
            "likeliest_theta_times_x": likeliest * self.x,
            "evidence_lost": float(evidence[1] - evidence[0]),
            "gap_at_peak": float(evidence[0]) - bound,
            "rise_at_negative_x": float(negative.diff().min()),
        }

    def ascend(self, start: Tensor) -> Tensor:
        """Gradient ascent on L in the logarithms of θ and ϕ, which keeps both positive."""
        path, rate = [start], self.rate / (1 + self.x**2 / 4)  # the bound curves like x²
        for _ in range(self.steps):
            rates = path[-1].exp()
            slopes = torch.stack(elbo_gradient(rates[0], rates[1], self.x))
            path.append(path[-1] + rate * rates * slopes)
        return torch.stack(path)


def contours(x: float, path: Tensor, likeliest: float) -> "Figure":
    figure, axes = subplots(size=(6.2, 4.8))
    ax = axes[0, 0]
    line = 2 / x * torch.logspace(-1, 0.7, 160, dtype=torch.float64)
    values = elbo(line[None], line[:, None], x)
    top = -HALF_LOG_2PI - x**2 / 4
    levels = (top - x**2 / 4 * torch.tensor([20.0, 10, 5, 3, 2, 1.2, 0.7, 0.4, 0.2, 0.08, 0.02, 0.0])).tolist()
    filled = ax.contourf(line, line, values, levels=levels, cmap="viridis", extend="min")
    figure.colorbar(filled, ax=ax, label="L, nats", format="%.2f").outline.set_visible(False)
    dark, light = "#111111", "#f8f8f8"  # on the colours of the map, whatever the page
    ax.plot(path[:, 0], path[:, 1], color=dark, linewidth=1.4)
    ax.plot(*path[0].tolist(), "o", color=dark, markersize=6)
    ax.plot(2 / x, 2 / x, "*", color=PALETTE[1], markersize=16)
    ax.plot(1 / x, 1 / x, "x", color=dark, markersize=9, markeredgewidth=2.4)
    for name, rate in (("1/x", 1 / x), ("2/x", 2 / x)):
        ax.annotate(name, (rate, rate), xytext=(0, 9), textcoords="offset points", color=dark, ha="center")
    ax.axvline(likeliest, ymin=0.16, color=dark, linestyle="--", linewidth=1.2)
    ax.annotate(
        "likeliest θ", (likeliest, line[0]), xytext=(0, 8), textcoords="offset points", color=light, ha="center"
    )
    ax.set(xscale="log", yscale="log", xlabel="θ, rate of the prior", ylabel="ϕ, rate of q")
    ax.grid(visible=False)
    return figure


def evidence_and_bound(observed: tuple[float, ...]) -> "Figure":
    figure, axes = subplots(1, len(observed), size=(10.0, 3.4))
    theta = torch.logspace(-1, 1, 200, dtype=torch.float64)
    for ax, x in zip(axes[0], observed, strict=True):
        evidence, bound = log_evidence(theta, x), elbo(theta, best_phi(theta, x), x)
        ax.plot(theta, evidence, color=PALETTE[0], label="log p_θ(x)")
        ax.plot(theta, bound, color=PALETTE[1], label="best bound")
        likeliest = torch.tensor(likeliest_theta(x), dtype=torch.float64)
        ax.plot(likeliest, log_evidence(likeliest, x), "o", color=PALETTE[0])
        ax.plot(2 / x, -HALF_LOG_2PI - x**2 / 4, "*", color=PALETTE[1], markersize=12)
        ax.set(xscale="log", xlabel="θ", title=f"x = {x:g}")
    axes[0, 0].set_ylabel("nats")
    axes[0, 0].legend(loc="lower center")
    return figure


def no_peak(observed: tuple[float, ...]) -> "Figure":
    figure, axes = subplots(size=(6.4, 3.6))
    ax = axes[0, 0]
    theta = torch.logspace(-0.3, 2.5, 200, dtype=torch.float64)
    for x, colour in zip(observed, PALETTE, strict=False):
        ax.plot(theta, elbo(theta, best_phi(theta, x), x) + HALF_LOG_2PI + x**2 / 2, color=colour, label=f"x = {x:g}")
    ax.axhline(0, color=INK, linestyle="--", linewidth=1)
    ax.annotate(
        "limit for θ → ∞",
        (1, 0),
        xycoords=("axes fraction", "data"),
        xytext=(-4, -14),
        color=FAINT,
        textcoords="offset points",
        ha="right",
    )
    ax.set(xscale="log", xlabel="θ", ylabel="bound less its limit, nats", ylim=(-1.2, 0.4))
    ax.legend(loc="lower right")
    return figure


def row(x: float) -> dict[str, str | float]:
    peak, likeliest = torch.tensor([elbo_maximiser(x), likeliest_theta(x)], dtype=torch.float64)
    numbers = {
        "x": x,
        "θ at the peak, 2/x": float(peak),
        "bound there": float(elbo(peak, peak, x)),
        "evidence there": float(log_evidence(peak, x)),
        "likeliest θ": float(likeliest),
        "evidence there ": float(log_evidence(likeliest, x)),
    }
    return {name: round(value, 4) for name, value in numbers.items()}
