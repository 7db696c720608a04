"""SGD convergence rate: averaged SGD converges as 1/√T; a fixed learning rate has a noise floor (book sec. 3.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.optim import averaged_sgd, averaged_sgd_bound, averaged_sgd_rate, biased_coin, coin_subgradient
from parnassus.report import INK, PALETTE, subplots
from parnassus.train import Positive, Run, between

covers = ("B3.1-6", "D1.5.5")
expected = {
    "exponent": between(-0.55, -0.45, "exponent of T in the error of averaged SGD"),
    "error_bound_ratio": between(0.4, 1.0, "maximum ratio of the error to its bound Rρ/√T"),
    "noise_floor_ratio": between(0.9, 1.1, "ratio of the noise floor at a fixed learning rate to η σ²/(2 − η)"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_runs": 300, "max_steps": 256}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_runs: Positive[int] = 4_000  # stochastic runs to average over
    max_steps: Positive[int] = 4_096  # maximum number of steps of a run

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        sizes = [4**k for k in range(1, 7) if 4**k <= self.max_steps]
        errors = []
        for steps in sizes:
            bias = steps**-0.5
            problem, subgradient = biased_coin(bias), coin_subgradient(bias, generator=generator)
            eta = averaged_sgd_rate(steps, radius=1.0, lipschitz=1.0)
            mean = averaged_sgd(subgradient, problem.start.repeat(self.num_runs, 1), learning_rate=eta, steps=steps)
            errors.append(problem.excess(mean).mean())
        t, error = torch.tensor(sizes, dtype=torch.float64), torch.stack(errors)
        bound = averaged_sgd_bound(t, radius=1.0, lipschitz=1.0)
        figure, axes = subplots(1, 2, size=(10.0, 4.0))
        axes[0, 0].loglog(t, error, color=PALETTE[0], marker="o", markersize=4, label="biased coin, bias 1/√T")
        axes[0, 0].loglog(t, bound, color=INK, linestyle="--", linewidth=1.2, label="Rρ/√T")
        axes[0, 0].set(xlabel="steps T", title="E f(w̄) − f*")
        axes[0, 0].legend()
        floors = []
        for eta, colour in zip((0.02, 0.1, 0.5), PALETTE, strict=False):
            squares = mean_squares(eta, steps=300, num_runs=self.num_runs, generator=generator)
            axes[0, 1].semilogy(squares, color=colour, label=f"η = {eta:g}")
            axes[0, 1].axhline(eta / (2 - eta), color=colour, linestyle="--", linewidth=1)
            floors.append(float(squares[-60:].mean() * (2 - eta) / eta))
        axes[0, 1].set(xlabel="step", title="E w² on ½w² with gradient noise")
        axes[0, 1].legend(loc="upper right")
        run.figure(
            "error of SGD",
            figure,
            "Left: the biased-coin problem with bias 1/√T, which T samples hardly distinguish from 0; the error of the "
            "mean iterate is close to its bound Rρ/√T. Right: at a fixed learning rate and gradient noise of variance "
            "1, E w² converges to η/(2 − η), dashed.",
        )
        return {
            "exponent": exponent(t[[0, -1]], error[[0, -1]]),
            "error_bound_ratio": float((error / bound).max()),
            "noise_floor_ratio": max(floors, key=lambda ratio: abs(ratio - 1)),
        }


def mean_squares(eta: float, *, steps: int, num_runs: int, generator: torch.Generator) -> Tensor:
    """The mean of w² after each step of SGD on ½w² from 3, with standard normal gradient noise."""
    w = torch.full((num_runs,), 3.0, dtype=torch.float64)
    squares = []
    for _ in range(steps):
        squares.append(w.square().mean())
        w = w - eta * (w + torch.randn(num_runs, generator=generator, dtype=torch.float64))
    return torch.stack(squares)
