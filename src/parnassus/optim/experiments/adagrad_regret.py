"""AdaGrad regret: every term of the regret bound, and the convergence rate that it implies (book sec. 3.3.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import exponent
from parnassus.optim import (
    AdaGradTrajectory,
    OptimisationProblem,
    infinity_norm,
    quadratic,
    smooth_regret_bound,
)
from parnassus.optim.convexity.adagrad_regret import biased_coin_error
from parnassus.report import INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between

covers = ("B3.3.1-1", "B3.3.1-2", "B3.3.1-3", "B3.3.1-4", "B3.3.1-5", "B3.3.1-6")
expected = {
    "identity_error": at_most(1e-9, "maximum error of the identity of one step"),
    "distance_bound_ratio": at_most(1.0, "maximum ratio of the summed distance decreases to D² tr G"),
    "gradient_norm_bound_ratio": at_most(1.0, "maximum ratio of the summed preconditioned gradient norms to 2 tr G"),
    "regret_bound_ratio": at_most(1.0, "maximum ratio of the regret to (D²/(2η) + η) tr G"),
    "distance_to_rate_ratio": at_most(
        1.0, "maximum ratio of the distance from w* to η on the smooth function: D = η is valid"
    ),
    "smooth_regret_bound_ratio": at_most(1.0, "ratio of the total regret on a smooth function to (9/2)βdD²"),
    "smooth_exponent": between(-1.05, -0.95, "exponent of T in the mean regret, exact gradients of a smooth function"),
    "stochastic_exponent": between(-0.55, -0.43, "exponent of T in the error, stochastic gradients"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100, "num_runs": 300, "max_steps": 256}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_000  # steps of the deterministic runs
    dim: Positive[int] = 5  # dimension d of the two functions
    num_runs: Positive[int] = 4_000  # stochastic runs to average over
    max_steps: Positive[int] = 4_096  # maximum number of steps of a stochastic run

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        nonsmooth = infinity_norm(torch.randn(self.dim, generator=generator, dtype=torch.float64))
        smooth = quadratic(torch.logspace(-1, 0, self.dim, dtype=torch.float64), generator=generator)
        runs = {
            "max |wᵢ|": (nonsmooth, self.run_adagrad(nonsmooth)),
            "quadratic": (smooth, self.run_adagrad(smooth)),
        }
        proof = self.compare_proof_terms(run, runs)

        t = torch.arange(1, self.steps + 1, dtype=torch.float64)
        mean = {name: regret(problem, trajectory) / t for name, (problem, trajectory) in runs.items()}
        sizes = [4**k for k in range(2, 7) if 4**k <= self.max_steps]
        errors = torch.stack([biased_coin_error(steps, runs=self.num_runs, generator=generator) for steps in sizes])
        figure, axes = subplots(size=(6.6, 4.2))
        ax = axes[0, 0]
        ax.loglog(sizes, errors, color=PALETTE[2], marker="o", markersize=4, label="biased-coin problem, mean iterate")
        for (name, values), colour in zip(mean.items(), PALETTE, strict=False):
            ax.loglog(t, values, color=colour, label=f"{name}, mean regret")
        ax.loglog(t, 0.5 / t.sqrt(), color=INK, linestyle="--", linewidth=1, label="slope −½")
        ax.loglog(t, 5 / t, color=INK, linestyle=":", linewidth=1.2, label="slope −1")
        ax.set(xlabel="steps T", ylabel="f − f*")
        ax.legend(fontsize=8, loc="lower left")
        run.figure(
            "convergence rate",
            figure,
            "The printed O(1/T) holds for exact gradients of a smooth function, whose total regret is bounded. With "
            "stochastic gradients of norm 1 the trace in the bound is √T, and the error decays as 1/√T.",
        )
        trajectory = runs["quadratic"][1]
        total = regret(smooth, trajectory)
        bound = smooth_regret_bound(beta=smooth.beta, dim=self.dim, diameter=trajectory.learning_rate)
        middle = self.steps // 2 - 1
        result = {
            **proof,
            "distance_to_rate_ratio": trajectory.diameter(smooth.minimiser) / trajectory.learning_rate,
            "smooth_regret_bound_ratio": float(total[-1]) / bound,
            "smooth_exponent": exponent(t[[middle, -1]], mean["quadratic"][[middle, -1]]),
            "stochastic_exponent": exponent((sizes[0], sizes[-1]), errors[[0, -1]]),
        }
        run.note(
            "results",
            "Every inequality of the proof holds at every step. The mean regret decays as "
            f"T^({result['smooth_exponent']:.2f}) on the smooth function; the error decays as "
            f"T^({result['stochastic_exponent']:.2f}) on the biased-coin problem (bias 1/√T), which "
            "is the rate of the bound.",
        )
        return result

    def run_adagrad(self, problem: OptimisationProblem) -> AdaGradTrajectory:
        """AdaGrad with exact gradients and a learning rate that also bounds all distances from w*."""
        gradient = grad(problem.loss)
        return AdaGradTrajectory.compute(
            lambda _, w: gradient(w), problem.start, learning_rate=2.5 * problem.radius, steps=self.steps
        )

    def compare_proof_terms(
        self, run: Run, runs: dict[str, tuple[OptimisationProblem, AdaGradTrajectory]]
    ) -> dict[str, float]:
        """Plot the chain of inequalities of the proof, each curve below the next."""
        figure, axes = subplots(1, 2, size=(10.0, 4.2))
        gaps, ratios = [], []
        t = torch.arange(1, self.steps + 1)
        for ax, (name, (problem, trajectory)) in zip(axes[0], runs.items(), strict=True):
            eta, diameter = trajectory.learning_rate, trajectory.diameter(problem.minimiser)
            decreases, norms = trajectory.distance_decreases(problem.minimiser), trajectory.preconditioned_norms()
            linearised = trajectory.linearised_regret(problem.minimiser)
            gaps.append((linearised - decreases / (2 * eta) - eta / 2 * norms).abs().max())
            total = regret(problem, trajectory)
            lines = {
                "regret Σ f − f*": total,
                "Σ gᵀ(w − w*)": linearised.cumsum(0),
                "D² tr G/(2η) + (η/2) Σ ‖g‖²": trajectory.distance_bound(diameter) / (2 * eta)
                + eta / 2 * norms.cumsum(0),
                "(D²/(2η) + η) tr G": trajectory.regret_bound(diameter),
            }
            for (label, values), colour in zip(lines.items(), PALETTE, strict=False):
                ax.loglog(t, values, color=colour, label=label)
            ax.set(xlabel="steps T", title=name)
            ratios.append(
                [
                    (decreases.cumsum(0) / trajectory.distance_bound(diameter)).max(),
                    (norms.cumsum(0) / trajectory.preconditioned_norm_bound()).max(),
                    (total / trajectory.regret_bound(diameter)).max(),
                ]
            )
        axes[0, 0].legend(fontsize=8, loc="upper left")
        run.figure(
            "terms of the proof",
            figure,
            "The regret is at most its linearisation, which is an exact sum of distance decreases and gradient norms; "
            "bounding the former by D² tr G and the latter by 2 tr G gives the theorem (top line). max |wᵢ| is linear "
            "along rays, so that its first two lines coincide.",
        )
        distances, norms_ratio, regret_ratio = torch.tensor(ratios).max(0).values.tolist()
        return {
            "identity_error": float(max(gaps)),
            "distance_bound_ratio": distances,
            "gradient_norm_bound_ratio": norms_ratio,
            "regret_bound_ratio": regret_ratio,
        }


def regret(problem: OptimisationProblem, trajectory: AdaGradTrajectory) -> Tensor:
    """Σ_{i≤t} f(w⁽ⁱ⁾) − f*."""
    return problem.excess(trajectory.path[:-1]).cumsum(0)
