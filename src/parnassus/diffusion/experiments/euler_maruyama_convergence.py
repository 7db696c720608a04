"""Strong and weak order of convergence of the Euler-Maruyama method (Diehl sec. 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.diffusion.continuous.brownian_motion import ito_sum, refine_path, stratonovich_sum, wiener_process
from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama, euler_maruyama_path
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.report import FAINT, INK, PALETTE, histograms, subplots
from parnassus.train import Positive, Run, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-24", "C-25")
expected = {
    "strong_order_multiplicative": between(0.45, 0.6, "strong order of convergence with multiplicative noise"),
    "strong_order_additive": between(0.95, 1.08, "strong order of convergence with additive noise"),
    "weak_order_multiplicative": between(0.8, 1.2, "weak order of convergence (of E X) with multiplicative noise"),
    "ito_mean": between(-0.03, 0.03, "mean of the Itô integral ∫W dW; the exact value is 0"),
    "stratonovich_mean": between(0.46, 0.54, "mean of the Stratonovich integral ∫W ∘ dW; the exact value is ½"),
    "finest_error": no_band("root mean squared error of paths with the smallest step, multiplicative noise"),
}
profiles = {
    "smoke": {"num_paths": 2_000, "max_level": 6},
    "gpu": {"num_paths": 400_000, "max_level": 10},
}


def half(x: Tensor, _: Tensor) -> Tensor:
    """½X, the drift and the volatility of the equation with multiplicative noise."""
    return x / 2


@dataclass(frozen=True)
class Experiment:
    num_paths: Positive[int] = 20_000  # paths of the Wiener process
    max_level: Positive[int] = 8  # the finest grid in the comparison has 2 to this power steps

    def __call__(self, run: Run) -> dict[str, float]:
        times = torch.linspace(0, 1, 2, dtype=torch.float64, device=run.device)
        noise = wiener_process(times, (self.num_paths,))
        grids = [(times, noise)]
        for _ in range(self.max_level + 2):
            grids.append(refine_path(*grids[-1]))
        plot_path(run, [(times.cpu(), noise[:, :1].cpu()) for times, noise in grids])

        times, noise = grids[-1]
        ito, stratonovich = ito_sum(noise, noise)[-1], stratonovich_sum(noise, noise)[-1]
        figure = histograms(
            {
                "left endpoints (Itô)": ito.clamp(max=4),
                "mean of both endpoints (Stratonovich)": stratonovich.clamp(max=4),
            },
            x_label="∫₀¹ W dW",
        )
        run.figure(
            "integrals",
            figure,
            "Distributions of the Itô and the Stratonovich integral, which differ by a shift of ½. Values are clipped "
            "at 4.",
        )

        strong, weak = self.measure_errors(grids)
        delta = [2.0**-k for k in range(3, self.max_level + 1)]
        run.figure(
            "strong errors",
            plot_orders(delta, strong, {"Δ^½": 0.5, "Δ": 1.0}, "RMS error of paths at t = 1"),
            "The same Wiener paths on finer and finer grids. With multiplicative noise a step neglects the change of "
            "the volatility within it, and the error decreases only as Δ^½.",
        )
        run.figure(
            "weak errors",
            plot_orders(delta, weak, {"Δ": 1.0}, "error of E X at t = 1"),
            "The error of the expectation decreases as Δ.",
        )
        run.table("errors", [{"Δ": d, **{n: row[i] for n, row in strong.items()}} for i, d in enumerate(delta)])
        result = {
            "strong_order_multiplicative": convergence_order(delta, strong["dX = ½X dt + ½X dW"]),
            "strong_order_additive": convergence_order(delta, strong["dX = −X dt + dW"]),
            "weak_order_multiplicative": convergence_order(delta, weak["dX = ½X dt + ½X dW"]),
            "ito_mean": float(ito.mean()),
            "stratonovich_mean": float(stratonovich.mean()),
            "finest_error": strong["dX = ½X dt + ½X dW"][-1],
        }
        run.note(
            "orders of convergence",
            f"Strong order {result['strong_order_multiplicative']:.2f} with multiplicative and "
            f"{result['strong_order_additive']:.2f} with additive noise; weak order "
            f"{result['weak_order_multiplicative']:.2f} with multiplicative noise.",
        )
        return result

    def measure_errors(
        self, grids: list[tuple[Tensor, Tensor]]
    ) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """RMS errors of paths and errors of means at time 1, for Δ = 2^−3, …, 2^−max_level.

        Both are relative to the solution along the same W, which reduces the variance of the means.
        """
        process = OrnsteinUhlenbeck()
        times, noise = grids[-1]
        start = torch.ones_like(noise[0])
        truths = {
            "dX = ½X dt + ½X dW": torch.exp(0.375 * times[-1] + noise[-1] / 2),
            "dX = −X dt + dW": euler_maruyama(process.drift, process.volatility, start, times, wiener=noise),
        }
        strong: dict[str, list[float]] = {name: [] for name in truths}
        weak: dict[str, list[float]] = {name: [] for name in truths}
        for times, noise in grids[3 : self.max_level + 1]:
            ends = {
                "dX = ½X dt + ½X dW": euler_maruyama(half, half, start, times, wiener=noise),
                "dX = −X dt + dW": euler_maruyama(process.drift, process.volatility, start, times, wiener=noise),
            }
            for name, end in ends.items():
                strong[name].append(float((end - truths[name]).square().mean().sqrt()))
                weak[name].append(abs(float((end - truths[name]).mean())))
        return strong, weak


def plot_path(run: Run, grids: list[tuple[Tensor, Tensor]]) -> None:
    """One Wiener path on several grids, and the numerical and exact solutions along it."""
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    fine_times, fine = grids[-1]
    truth = torch.exp(0.375 * fine_times + fine[:, 0] / 2)
    axes[0, 0].plot(fine_times, fine[:, 0], color=FAINT, linewidth=0.8)
    axes[0, 1].plot(fine_times, truth, color=INK, linewidth=1, label="exact")
    for level, colour in ((2, PALETTE[1]), (4, PALETTE[0])):
        times, noise = grids[level]
        path = torch.stack(list(euler_maruyama_path(half, half, torch.ones(1).double(), times, wiener=noise)))
        name = f"{2**level} steps"
        axes[0, 0].plot(times, noise[:, 0], color=colour, marker="o", markersize=3, label=name)
        axes[0, 1].plot(times, path[:, 0], color=colour, marker="o", markersize=3, label=name)
    axes[0, 0].set(title="one path of W on two grids", xlabel="t")
    axes[0, 1].set(title="dX = ½X dt + ½X dW along this path", xlabel="t")
    for ax in axes[0]:
        ax.legend()
    run.figure(
        "path",
        figure,
        "Left: a Wiener path refined by Brownian bridges, which keep the earlier points. Right: the Euler-Maruyama "
        "solutions on both grids and the exact solution.",
    )


def plot_orders(
    delta: list[float], errors: Mapping[str, list[float]], guides: Mapping[str, float], y_label: str
) -> "Figure":
    """Errors against Δ on logarithmic axes, with dashed lines of the theoretical orders."""
    figure, axes = subplots(size=(6.4, 4.0))
    ax = axes[0, 0]
    for (name, row), colour in zip(errors.items(), PALETTE, strict=False):
        ax.loglog(delta, row, marker="o", markersize=4, color=colour, label=name)
    for (name, power), row in zip(guides.items(), errors.values(), strict=False):
        guide = [1.5 * row[0] * (d / delta[0]) ** power for d in delta]
        ax.loglog(delta, guide, color=FAINT, linestyle="--", linewidth=1)
        ax.annotate(name, (delta[-1], guide[-1]), xytext=(6, 8), textcoords="offset points", ha="left")
    ax.set(xlabel="step Δ", ylabel=y_label)
    ax.legend()
    return figure


def convergence_order(delta: list[float], errors: list[float]) -> float:
    """The exponent of Δ in the errors, which are clipped below at 1e-12."""
    return exponent(delta, [max(error, 1e-12) for error in errors])
