"""AdaGrad's regret, its bound, and the rate that really follows from it (book sec. 3.3.1)."""

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import exponent
from parnassus.optim import (
    AdaGradRun,
    Problem,
    averaged_descent,
    biased_coin,
    coin_slope,
    largest_coordinate,
    quadratic,
    smooth_regret_bound,
)
from parnassus.report import INK, PALETTE, subplots
from parnassus.train import Run, at_most, between

covers = ("B3.3.1-1", "B3.3.1-2", "B3.3.1-3", "B3.3.1-4", "B3.3.1-5", "B3.3.1-6")
expected = {
    "identity_gap": at_most(1e-9, "greatest error of the identity of one step"),
    "distances_over_bound": at_most(1.0, "sum of the approaches over D² tr G, at most"),
    "lengths_over_bound": at_most(1.0, "sum of the gradients' lengths over 2 tr G, at most"),
    "regret_over_bound": at_most(1.0, "regret over (D²/(2η) + η) tr G, at most"),
    "distance_over_rate": at_most(1.0, "greatest distance from w* over η on the smooth function, so that D = η serves"),
    "smooth_regret_over_bound": at_most(1.0, "all regret on a smooth function over (9/2)βdD²"),
    "smooth_exponent": between(-1.05, -0.95, "exponent of T in the mean regret, exact gradients of a smooth function"),
    "stochastic_exponent": between(-0.55, -0.43, "exponent of T in the error, stochastic gradients"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100, "runs": 300, "longest": 256}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_000  # steps of the recorded runs
    size: int = 5  # dimension d of the two functions
    runs: int = 4_000  # stochastic runs to average over
    longest: int = 4_096  # most steps of a stochastic run

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        kinked = largest_coordinate(torch.randn(self.size, generator=generator, dtype=torch.float64))
        smooth = quadratic(torch.logspace(-1, 0, self.size, dtype=torch.float64), generator=generator)
        recorded = {"max |wᵢ|": (kinked, self.follow(kinked)), "quadratic": (smooth, self.follow(smooth))}
        proof = self.terms(run, recorded)

        t = torch.arange(1, self.steps + 1, dtype=torch.float64)
        mean = {name: problem.excess(way.path[:-1]).cumsum(0) / t for name, (problem, way) in recorded.items()}
        sizes = [4**k for k in range(2, 7) if 4**k <= self.longest]
        errors = torch.stack([self.coin_error(steps, generator) for steps in sizes])
        figure, axes = subplots(size=(6.6, 4.2))
        ax = axes[0, 0]
        ax.loglog(sizes, errors, color=PALETTE[2], marker="o", markersize=4, label="coins of bias 1/√T, mean place")
        for (name, values), colour in zip(mean.items(), PALETTE, strict=False):
            ax.loglog(t, values, color=colour, label=f"{name}, mean regret")
        ax.loglog(t, 0.5 / t.sqrt(), color=INK, linestyle="--", linewidth=1, label="slope −½")
        ax.loglog(t, 5 / t, color=INK, linestyle=":", linewidth=1.2, label="slope −1")
        ax.set(xlabel="steps T", ylabel="f − f*")
        ax.legend(fontsize=8, loc="lower left")
        run.figure(
            "the rate",
            figure,
            "The printed O(1/T) holds for exact gradients of a smooth function, whose whole regret is bounded. With "
            "stochastic gradients of length one the trace in the bound is √T, and so is the error: 1/√T.",
        )
        followed = recorded["quadratic"][1]
        whole = problem_regret(smooth, followed)
        bound = smooth_regret_bound(beta=smooth.beta, size=self.size, diameter=followed.rate)
        late = self.steps // 2 - 1
        result = {
            **proof,
            "distance_over_rate": followed.diameter(smooth.minimiser) / followed.rate,
            "smooth_regret_over_bound": float(whole[-1]) / bound,
            "smooth_exponent": exponent(t[[late, -1]], mean["quadratic"][[late, -1]]),
            "stochastic_exponent": exponent((sizes[0], sizes[-1]), errors[[0, -1]]),
        }
        run.note(
            "what to see",
            f"Each line of the proof holds along the way. In the end the mean regret falls as "
            f"T^({result['smooth_exponent']:.2f}) on the smooth function and the error as "
            f"T^({result['stochastic_exponent']:.2f}) on the coins, where the bound promises no more.",
        )
        return result

    def follow(self, problem: Problem) -> AdaGradRun:
        """AdaGrad along exact gradients, with a rate that is also a bound D on all distances from w*."""
        slope = grad(problem.loss)
        return AdaGradRun.follow(lambda _, w: slope(w), problem.start, rate=2.5 * problem.radius, steps=self.steps)

    def terms(self, run: Run, recorded: dict[str, tuple[Problem, AdaGradRun]]) -> dict[str, float]:
        """The chain of the proof as curves, each below the next."""
        figure, axes = subplots(1, 2, size=(10.0, 4.2))
        gaps, ratios = [], []
        t = torch.arange(1, self.steps + 1)
        for ax, (name, (problem, way)) in zip(axes[0], recorded.items(), strict=True):
            approaches, lengths = way.approaches(problem.minimiser), way.lengths()
            linear = way.linear_losses(problem.minimiser)
            diameter = way.diameter(problem.minimiser)
            gaps.append((linear - approaches / (2 * way.rate) - way.rate / 2 * lengths).abs().max())
            regret = problem_regret(problem, way)
            lines = {
                "regret Σ f − f*": regret,
                "Σ gᵀ(w − w*)": linear.cumsum(0),
                "D² tr G/(2η) + (η/2) Σ ‖g‖²": way.approach_bound(diameter) / (2 * way.rate)
                + way.rate / 2 * lengths.cumsum(0),
                "(D²/(2η) + η) tr G": way.regret_bound(diameter),
            }
            for (label, values), colour in zip(lines.items(), PALETTE, strict=False):
                ax.loglog(t, values, color=colour, label=label)
            ax.set(xlabel="steps T", title=name)
            ratios.append(
                [
                    (approaches.cumsum(0) / way.approach_bound(diameter)).max(),
                    (lengths.cumsum(0) / way.length_bound()).max(),
                    (regret / way.regret_bound(diameter)).max(),
                ]
            )
        axes[0, 0].legend(fontsize=8, loc="upper left")
        run.figure(
            "the proof, line by line",
            figure,
            "Regret is at most its linearisation, which is an exact sum of approaches and gradient lengths; bounding "
            "the one by D² tr G and the other by 2 tr G gives the theorem (top line). For max |wᵢ|, linear along "
            "rays, the first two lines are one.",
        )
        distances, lengths_ratio, regret_ratio = torch.tensor(ratios).max(0).values.tolist()
        return {
            "identity_gap": float(max(gaps)),
            "distances_over_bound": distances,
            "lengths_over_bound": lengths_ratio,
            "regret_over_bound": regret_ratio,
        }

    def coin_error(self, steps: int, generator: torch.Generator) -> Tensor:
        """Mean excess of AdaGrad's mean place on the coin that is hardest for so many steps, where G is √(t + 1)."""
        bias = steps**-0.5
        problem, slope = biased_coin(bias), coin_slope(bias, generator=generator)
        start = problem.start.repeat(self.runs, 1)
        mean = averaged_descent(lambda t, w: slope(t, w) / sqrt(t + 1), start, rate=1.0, steps=steps)
        return problem.excess(mean).mean()


def problem_regret(problem: Problem, way: AdaGradRun) -> Tensor:
    return problem.excess(way.path[:-1]).cumsum(0)
