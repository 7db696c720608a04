"""ELBO of the exp-normal-exp model in closed form: its maximum is not the MLE (Diehl ex. 6.7)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.latent.textbook.exp_normal_exp import (
    HALF_LOG_2PI,
    elbo,
    elbo_gradient,
    elbo_maximiser,
    log_evidence,
    maximum_likelihood_theta,
    optimal_phi,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D6.0.12", "D6.0.13", "D6.0.14")
expected = {
    "theta_times_x": between(1.999, 2.001, "x θ at the end of gradient ascent on the ELBO; the notes print 1"),
    "elbo_error": at_most(1e-4, "absolute difference of the final ELBO and −½ log 2π − x²/4, nats"),
    "mle_theta_times_x": between(1.2, 1.8, "x θ of the maximum-likelihood estimate"),
    "log_evidence_difference": at_least(0.005, "log-evidence of the MLE minus that of the ELBO maximiser, nats"),
    "gap_at_maximum": at_least(0.02, "log-evidence minus ELBO at the maximum of the ELBO, nats"),
    "min_increase_at_negative_x": at_least(
        0.0, "minimum increase of the ELBO with θ for x = −1, where it has no maximum"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 50}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    x: Positive[float] = 2.0  # observation
    steps: Positive[int] = 1_000  # steps of gradient ascent in (log θ, log ϕ)
    learning_rate: Positive[float] = 0.2  # learning rate of the ascent, divided by 1 + x²/4

    def __call__(self, run: Run) -> dict[str, float]:
        trajectory = self.ascend(torch.tensor([5.0 / self.x, 0.6 / self.x], dtype=torch.float64).log())
        maximiser, mle = elbo_maximiser(self.x), maximum_likelihood_theta(self.x)
        run.figure(
            "elbo",
            plot_elbo(self.x, trajectory.exp(), mle),
            "ELBO L(θ, ϕ; x), with gradient ascent from the dot to the maximum at θ = ϕ = 2/x (star). The cross is "
            "at 1/x, where the notes have the maximum; the dashed line is the maximum-likelihood θ.",
        )
        run.figure(
            "evidence",
            plot_evidence((1.0, 2.0, 3.5)),
            "log p_θ(x) and the ELBO with the optimal ϕ for each θ. As Exp(ϕ) does not contain the posterior, the gap "
            "depends on θ: the maximum of the ELBO (star) is not at the maximum-likelihood θ (dot).",
        )
        run.figure(
            "limit",
            plot_elbo_minus_limit((-1.0, 0.0, 1.0)),
            "ELBO with the optimal ϕ, minus its limit −½ log 2π − x²/2 for θ → ∞. For x ≤ 0 it increases to the limit "
            "and has no maximum: the code concentrates at 0. For x > 0 it exceeds the limit and converges from above.",
        )
        run.table("observations", [compare_maxima(x) for x in (1.0, 2.0, 3.5)], "ELBO and log-evidence in nats.")

        reached = trajectory[-1].exp()
        theta = torch.logspace(-1, 3, 80, dtype=torch.float64)
        negative = elbo(theta, optimal_phi(theta, -1.0), -1.0)
        evidence = log_evidence(torch.tensor([maximiser, mle], dtype=torch.float64), self.x)
        bound = float(elbo(reached[0], reached[1], self.x))
        return {
            "theta_times_x": float(reached[0]) * self.x,
            "elbo_error": abs(bound + HALF_LOG_2PI + self.x**2 / 4),
            "mle_theta_times_x": mle * self.x,
            "log_evidence_difference": float(evidence[1] - evidence[0]),
            "gap_at_maximum": float(evidence[0]) - bound,
            "min_increase_at_negative_x": float(negative.diff().min()),
        }

    def ascend(self, start: Tensor) -> Tensor:
        """Gradient ascent on L in the logarithms of θ and ϕ, which keeps both positive."""
        trajectory, step_size = [start], self.learning_rate / (1 + self.x**2 / 4)  # the curvature grows like x²
        for _ in range(self.steps):
            rates = trajectory[-1].exp()
            gradient = torch.stack(elbo_gradient(rates[0], rates[1], self.x))
            trajectory.append(trajectory[-1] + step_size * rates * gradient)
        return torch.stack(trajectory)


def plot_elbo(x: float, trajectory: Tensor, mle: float) -> "Figure":
    figure, axes = subplots(size=(6.2, 4.8))
    ax = axes[0, 0]
    line = 2 / x * torch.logspace(-1, 0.7, 160, dtype=torch.float64)
    values = elbo(line[None], line[:, None], x)
    top = -HALF_LOG_2PI - x**2 / 4
    levels = (top - x**2 / 4 * torch.tensor([20.0, 10, 5, 3, 2, 1.2, 0.7, 0.4, 0.2, 0.08, 0.02, 0.0])).tolist()
    filled = ax.contourf(line, line, values, levels=levels, cmap="viridis", extend="min")
    figure.colorbar(filled, ax=ax, label="L (nats)", format="%.2f").outline.set_visible(False)
    dark, light = "#111111", "#f8f8f8"  # on the colour map, for light and dark pages alike
    ax.plot(trajectory[:, 0], trajectory[:, 1], color=dark, linewidth=1.4)
    ax.plot(*trajectory[0].tolist(), "o", color=dark, markersize=6)
    ax.plot(2 / x, 2 / x, "*", color=PALETTE[1], markersize=16)
    ax.plot(1 / x, 1 / x, "x", color=dark, markersize=9, markeredgewidth=2.4)
    for name, rate in (("1/x", 1 / x), ("2/x", 2 / x)):
        ax.annotate(name, (rate, rate), xytext=(0, 9), textcoords="offset points", color=dark, ha="center")
    ax.axvline(mle, ymin=0.16, color=dark, linestyle="--", linewidth=1.2)
    ax.annotate("MLE of θ", (mle, line[0]), xytext=(0, 8), textcoords="offset points", color=light, ha="center")
    ax.set(xscale="log", yscale="log", xlabel="θ, rate of the prior", ylabel="ϕ, rate of q")
    ax.grid(visible=False)
    return figure


def plot_evidence(observations: tuple[float, ...]) -> "Figure":
    figure, axes = subplots(1, len(observations), size=(10.0, 3.4))
    theta = torch.logspace(-1, 1, 200, dtype=torch.float64)
    for ax, x in zip(axes[0], observations, strict=True):
        evidence, bound = log_evidence(theta, x), elbo(theta, optimal_phi(theta, x), x)
        ax.plot(theta, evidence, color=PALETTE[0], label="log p_θ(x)")
        ax.plot(theta, bound, color=PALETTE[1], label="ELBO, optimal ϕ")
        mle = torch.tensor(maximum_likelihood_theta(x), dtype=torch.float64)
        ax.plot(mle, log_evidence(mle, x), "o", color=PALETTE[0])
        ax.plot(2 / x, -HALF_LOG_2PI - x**2 / 4, "*", color=PALETTE[1], markersize=12)
        ax.set(xscale="log", xlabel="θ", title=f"x = {x:g}")
    axes[0, 0].set_ylabel("nats")
    axes[0, 0].legend(loc="lower center")
    return figure


def plot_elbo_minus_limit(observations: tuple[float, ...]) -> "Figure":
    figure, axes = subplots(size=(6.4, 3.6))
    ax = axes[0, 0]
    theta = torch.logspace(-0.3, 2.5, 200, dtype=torch.float64)
    for x, colour in zip(observations, PALETTE, strict=False):
        ax.plot(
            theta, elbo(theta, optimal_phi(theta, x), x) + HALF_LOG_2PI + x**2 / 2, color=colour, label=f"x = {x:g}"
        )
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
    ax.set(xscale="log", xlabel="θ", ylabel="ELBO minus its limit (nats)", ylim=(-1.2, 0.4))
    ax.legend(loc="lower right")
    return figure


def compare_maxima(x: float) -> dict[str, str | float]:
    """θ, ELBO and log-evidence at the maximum of each."""
    maximiser, mle = torch.tensor([elbo_maximiser(x), maximum_likelihood_theta(x)], dtype=torch.float64)
    values = {
        "x": x,
        "ELBO maximiser, 2/x": float(maximiser),
        "its ELBO": float(elbo(maximiser, maximiser, x)),
        "its log-evidence": float(log_evidence(maximiser, x)),
        "MLE of θ": float(mle),
        "log-evidence of the MLE": float(log_evidence(mle, x)),
    }
    return {name: round(value, 4) for name, value in values.items()}
