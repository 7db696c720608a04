"""Stochastic gradients slow descent to one over root T, and at a fixed rate leave a floor (book sec. 3.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.optim import averaged_bound, averaged_descent, averaging_rate, biased_coin, coin_slope
from parnassus.report import INK, PALETTE, subplots
from parnassus.train import Run, between

covers = ("B3.1-6", "D1.5.5")
expected = {
    "exponent": between(-0.55, -0.45, "exponent of T in the error of averaged stochastic descent"),
    "error_over_bound": between(0.4, 1.0, "that error over its bound Rρ/√T, at most"),
    "floor_over_theory": between(0.9, 1.1, "floor of a fixed rate over η σ²/(2 − η)"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"runs": 300, "longest": 256}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    runs: int = 4_000  # stochastic runs to average over
    longest: int = 4_096  # most steps of a run

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        sizes = [4**k for k in range(1, 7) if 4**k <= self.longest]
        errors = []
        for steps in sizes:
            bias = steps**-0.5
            problem, slope = biased_coin(bias), coin_slope(bias, generator=generator)
            eta = averaging_rate(steps, radius=1.0, lipschitz=1.0)
            mean = averaged_descent(slope, problem.start.repeat(self.runs, 1), rate=eta, steps=steps)
            errors.append(problem.excess(mean).mean())
        t, error = torch.tensor(sizes, dtype=torch.float64), torch.stack(errors)
        bound = averaged_bound(t, radius=1.0, lipschitz=1.0)
        figure, axes = subplots(1, 2, size=(10.0, 4.0))
        axes[0, 0].loglog(t, error, color=PALETTE[0], marker="o", markersize=4, label="coin of bias 1/√T")
        axes[0, 0].loglog(t, bound, color=INK, linestyle="--", linewidth=1.2, label="Rρ/√T")
        axes[0, 0].set(xlabel="steps T", title="E f(w̄) − f*")
        axes[0, 0].legend()
        floors = []
        for eta, colour in zip((0.02, 0.1, 0.5), PALETTE, strict=False):
            squares = noisy_bowl(eta, steps=300, runs=self.runs, generator=generator)
            axes[0, 1].semilogy(squares, color=colour, label=f"η = {eta:g}")
            axes[0, 1].axhline(eta / (2 - eta), color=colour, linestyle="--", linewidth=1)
            floors.append(float(squares[-60:].mean() * (2 - eta) / eta))
        axes[0, 1].set(xlabel="step", title="E w² on ½w² with noise")
        axes[0, 1].legend(loc="upper right")
        run.figure(
            "stochastic gradients",
            figure,
            "Left: T tosses hardly tell a coin of bias 1/√T from a fair one, and the mean place errs by a share of its "
            "bound Rρ/√T. Right: with a fixed rate and noise of variance 1 in the gradient the square ends at "
            "η/(2 − η), dashed, however long one waits.",
        )
        return {
            "exponent": exponent(t[[0, -1]], error[[0, -1]]),
            "error_over_bound": float((error / bound).max()),
            "floor_over_theory": max(floors, key=lambda ratio: abs(ratio - 1)),
        }


def noisy_bowl(eta: float, *, steps: int, runs: int, generator: torch.Generator) -> Tensor:
    """The mean of w² after each step of descent on ½w² from 3, with normal noise in every gradient."""
    w = torch.full((runs,), 3.0, dtype=torch.float64)
    squares = []
    for _ in range(steps):
        squares.append(w.square().mean())
        w = w - eta * (w + torch.randn(runs, generator=generator, dtype=torch.float64))
    return torch.stack(squares)
