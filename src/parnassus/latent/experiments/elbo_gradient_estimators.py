"""Bias and variance of seven estimators of the ELBO gradient (Diehl sec. 6, book fig. 6.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.latent import LinearGaussian
from parnassus.latent.variational.gradient_estimators import (
    GradientEstimator,
    analytic_kl_gradient,
    bonnet_price_gradient,
    finite_difference_gradient,
    fixed_sample_gradient,
    reparametrisation_gradient,
    score_function_gradient,
    score_function_gradient_with_baseline,
)
from parnassus.latent.variational.reparametrisation import GaussianParameters
from parnassus.report import FAINT, curves, draw_blocks, subplots
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B5.2-1", "B5.2-4", "B6.3-1", "D6.0.15", "D6.0.16", "D6.0.17", "D6.0.18")
expected = {
    "max_bias": at_most(4.5, "maximum bias of the unbiased estimators over all coordinates, in standard errors"),
    "bias_fixed_samples": at_least(
        100.0, "maximum bias of the fixed-samples estimator, whose mean is 0, in standard errors"
    ),
    "rms_exponent": between(
        -0.55, -0.45, "exponent of the reparametrisation error as a function of the number of draws"
    ),
    "score_variance_ratio": at_least(
        20.0, "ratio of the variances of the score-function and reparametrisation gradients"
    ),
    "baseline_variance_ratio": at_least(
        3.0, "ratio of the variances of score-function gradients with baseline and reparametrisation gradients"
    ),
    "elbo_gap_reparametrisation": at_most(
        0.05, "maximum ELBO minus the final ELBO of reparametrisation gradients, nats"
    ),
    "elbo_gap_score": no_band("maximum ELBO minus the final ELBO of score-function gradients, nats"),
    "elbo_gap_fixed_samples": at_least(1.0, "maximum ELBO minus the final ELBO of fixed samples, nats"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_draws": 1_000, "steps": 10, "num_repeats": 5}, "gpu": {}}

ESTIMATORS: dict[str, GradientEstimator] = {
    "fixed samples": fixed_sample_gradient,
    "finite differences": finite_difference_gradient,
    "reparametrisation": reparametrisation_gradient,
    "analytic KL": analytic_kl_gradient,
    "Bonnet-Price": bonnet_price_gradient,
    "score function": score_function_gradient,
    "score + baseline": score_function_gradient_with_baseline,
}


@dataclass(frozen=True)
class Experiment:
    latent_dim: Positive[int] = 4  # dimension of the code
    num_features: Positive[int] = 8  # dimension of the observation
    num_draws: Positive[int] = 40_000  # draws for the estimates of bias and variance
    num_repeats: Positive[int] = 200  # estimates per point of the error curves
    steps: Positive[int] = 400  # steps of gradient ascent
    draws_per_step: Positive[int] = 16  # draws per step of the ascent
    learning_rate: Positive[float] = 0.02  # learning rate of the ascent

    def __call__(self, run: Run) -> dict[str, float]:
        problem = LinearGaussianProblem.of_size(self.num_features, self.latent_dim)
        run.figure("reparametrisation", plot_reparametrisation(), REPARAMETRISATION)
        run.figure("training and sampling", plot_phases(), PHASES)

        exact = torch.cat(problem.gradient(problem.start))
        noise = torch.randn(self.num_draws, self.latent_dim, dtype=torch.float64)
        rows = {
            name: torch.cat(estimator(problem.log_likelihood, problem.start, noise), 1)
            for name, estimator in ESTIMATORS.items()
        }
        bias = {
            name: float(((row.mean(0) - exact).abs() / (row.std(0) / self.num_draws**0.5).clamp(min=1e-9)).max())
            for name, row in rows.items()
        }
        variance = {name: row.var(0) for name, row in rows.items()}
        run.table(
            "estimators",
            [
                {
                    "estimator": name,
                    "requires": REQUIREMENTS[name],
                    "bias (standard errors)": round(bias[name], 1),
                    "variance in μ": float(f"{float(variance[name][: self.latent_dim].sum()):.3g}"),
                    "variance in log σ²": float(f"{float(variance[name][self.latent_dim :].sum()):.3g}"),
                }
                for name in ESTIMATORS
            ],
            f"From {self.num_draws:,} draws at one q; variances of a single draw, summed over coordinates.",
        )
        counts = [2**power for power in range(1, 9)]
        errors = {name: self.estimate_errors(each, problem, exact, counts) for name, each in ESTIMATORS.items()}
        shown = {name: (counts, error) for name, error in errors.items() if name != "finite differences"}
        figure = curves(shown, x_label="draws per estimate", y_label="RMS error of ∇L", log_x=True, log_y=True)
        run.figure("error", figure, ERRORS)

        elbos = {name: self.ascend(each, problem) for name, each in ESTIMATORS.items() if name != "finite differences"}
        step = range(self.steps + 1)
        figure = curves({name: (step, values) for name, values in elbos.items()}, x_label="step", y_label="ELBO (nats)")
        best = problem.max_elbo()
        figure.axes[0].axhline(best, color=FAINT, linestyle="--", linewidth=1)
        low = float(min(values[0] for values in elbos.values()))
        figure.axes[0].set_ylim(low - 0.3 * (best - low), best + 0.08 * (best - low))
        run.figure("ascent", figure, ASCENT)

        total = {name: float(value.sum()) for name, value in variance.items()}
        run.note(
            "comparison",
            "All estimators but the first have the same mean. Relative to the reparametrisation gradient, the variance "
            f"of the score function is {total['score function'] / total['reparametrisation']:.0f} times as large, "
            f"with a baseline {total['score + baseline'] / total['reparametrisation']:.1f} times, and as many more "
            "draws are required. Finite differences with common noise have the variance of reparametrisation and cost "
            "two evaluations per parameter.",
        )
        log_count, log_error = torch.tensor(counts).double().log(), errors["reparametrisation"].log()
        centred = log_count - log_count.mean()
        return {
            "max_bias": max(value for name, value in bias.items() if name != "fixed samples"),
            "bias_fixed_samples": bias["fixed samples"],
            "rms_exponent": float(centred @ log_error / (centred @ centred)),
            "score_variance_ratio": total["score function"] / total["reparametrisation"],
            "baseline_variance_ratio": total["score + baseline"] / total["reparametrisation"],
            "elbo_gap_reparametrisation": best - float(elbos["reparametrisation"][-1]),
            "elbo_gap_score": best - float(elbos["score function"][-1]),
            "elbo_gap_fixed_samples": best - float(elbos["fixed samples"][-1]),
        }

    def estimate_errors(
        self, estimator: GradientEstimator, problem: "LinearGaussianProblem", exact: Tensor, counts: list[int]
    ) -> Tensor:
        """The root-mean-square error of the average over each number of draws."""
        errors = []
        for count in counts:
            noise = torch.randn(self.num_repeats, count, self.latent_dim, dtype=torch.float64)
            means = vmap(lambda rows: torch.cat(estimator(problem.log_likelihood, problem.start, rows), 1).mean(0))(
                noise
            )
            errors.append((means - exact).square().sum(1).mean().sqrt())
        return torch.stack(errors)

    def ascend(self, estimator: GradientEstimator, problem: "LinearGaussianProblem") -> Tensor:
        """The exact ELBO along a stochastic gradient ascent with few draws per step."""
        q, elbos = problem.start, [problem.elbo(problem.start)]
        for _ in range(self.steps):
            gradient = estimator(
                problem.log_likelihood, q, torch.randn(self.draws_per_step, self.latent_dim, dtype=torch.float64)
            )
            q = GaussianParameters(
                *(part + self.learning_rate * step.mean(0) for part, step in zip(q, gradient, strict=True))
            )
            elbos.append(problem.elbo(q))
        return torch.stack(elbos)


@dataclass(frozen=True)
class LinearGaussianProblem:
    """One observation of a linear Gaussian model, and the q at which gradients are compared."""

    model: LinearGaussian
    x: Tensor
    start: GaussianParameters

    @classmethod
    def of_size(cls, features: int, latent: int) -> "LinearGaussianProblem":
        weight = torch.randn(features, latent, dtype=torch.float64) / latent**0.5
        model = LinearGaussian(weight, torch.zeros(features).double(), torch.eye(features, dtype=torch.float64))
        start = GaussianParameters(torch.zeros(latent, dtype=torch.float64), torch.zeros(latent, dtype=torch.float64))
        return cls(model, model.evidence.sample(), start)

    @property
    def log_likelihood(self) -> Callable[[Tensor], Tensor]:
        def log_likelihood(z: Tensor) -> Tensor:
            value: Tensor = self.model.likelihood(z).log_prob(self.x)
            return value

        return log_likelihood

    def elbo(self, q: GaussianParameters) -> Tensor:
        return self.model.elbo(self.x[None], q.mean[None], q.log_variance.exp().diag()[None])[0]

    def gradient(self, q: GaussianParameters) -> GaussianParameters:
        gradient: GaussianParameters = grad(self.elbo)(q)
        return gradient

    def max_elbo(self) -> float:
        """The maximum ELBO of a diagonal q: its variances are the inverse diagonal of the posterior precision."""
        posterior = self.model.posterior(self.x[None])
        variance = 1 / posterior.precision_matrix[0].diagonal()
        return float(self.elbo(GaussianParameters(posterior.mean[0], variance.log())))


def plot_reparametrisation() -> "Figure":
    """Sampling a code as a stochastic node, and as a function of noise (book fig. 6.1)."""
    figure, axes = subplots(2, 1, size=(7.4, 3.8))
    axes[0, 0].get_gridspec().set_height_ratios([1, 2])
    sampled = {"encoder": (0.0, 0.0), "μ, σ": (2.0, 0.0), "z ~ N(μ, σ²)": (4.1, 0.0), "loss": (6.2, 0.0)}
    edges = [("encoder", "μ, σ"), ("μ, σ", "z ~ N(μ, σ²)"), ("z ~ N(μ, σ²)", "loss")]
    draw_blocks(
        axes[0, 0],
        sampled,
        edges,
        random=["z ~ N(μ, σ²)"],
        gradients=[("loss", "z ~ N(μ, σ²)")],
        blocked=[("z ~ N(μ, σ²)", "μ, σ")],
    )
    reparametrised = {"encoder": (0.0, 0.0), "μ, σ": (2.0, 0.0), "z = μ + σ ε": (4.1, 0.0), "loss": (6.2, 0.0)}
    reparametrised["ε ~ N(0, 1)"] = (4.1, 1.2)
    back = [("loss", "z = μ + σ ε"), ("z = μ + σ ε", "μ, σ"), ("μ, σ", "encoder")]
    forward = [(start, end) for end, start in back]
    draw_blocks(
        axes[1, 0], reparametrised, [*forward, ("ε ~ N(0, 1)", "z = μ + σ ε")], random=["ε ~ N(0, 1)"], gradients=back
    )
    axes[0, 0].set_title("stochastic node: no gradient")
    axes[1, 0].set_title("reparametrised: noise is an input")
    axes[0, 0].set(xlim=axes[1, 0].get_xlim(), ylim=(-0.5, 0.5))
    axes[1, 0].set_ylim(-0.5, 1.5)
    return figure


def plot_phases() -> "Figure":
    """Training of a VAE, and sampling from it (book fig. 5.1)."""
    figure, axes = subplots(2, 1, size=(8.4, 3.6))
    axes[0, 0].get_gridspec().set_height_ratios([2, 1])
    training = {
        "x": (0.0, 0.0),
        "encoder": (1.5, 0.0),
        "μ, σ": (3.1, 0.0),
        "z": (4.5, 0.0),
        "decoder": (6.0, 0.0),
        "x̂": (7.5, 0.0),
        "variational loss": (3.1, -1.2),
        "reconstruction loss": (6.4, -1.2),
    }
    chain = ["x", "encoder", "μ, σ", "z", "decoder", "x̂"]
    arrows = [*pairwise(chain), ("μ, σ", "variational loss"), ("x̂", "reconstruction loss")]
    draw_blocks(axes[0, 0], training, arrows, random=["z"])
    testing = {"z ~ N(0, I)": (4.1, 0.0), "decoder": (6.0, 0.0), "x": (7.5, 0.0)}
    draw_blocks(axes[1, 0], testing, [("z ~ N(0, I)", "decoder"), ("decoder", "x")], random=["z ~ N(0, I)"])
    axes[0, 0].set_title("training")
    axes[0, 0].set_ylim(-1.6, 0.4)
    axes[1, 0].set(title="testing", xlim=axes[0, 0].get_xlim(), ylim=(-0.5, 0.5))
    return figure


REQUIREMENTS = {
    "fixed samples": "one evaluation, one gradient",
    "finite differences": "two evaluations per parameter",
    "reparametrisation": "∇ log p(x, z)",
    "analytic KL": "∇ log p(x|z), KL in closed form",
    "Bonnet-Price": "∇ and ∇² log p(x, z)",
    "score function": "log p(x, z) only",
    "score + baseline": "log p(x, z) only, at least two draws",
}
REPARAMETRISATION = (
    "The reparametrisation trick (book fig. 6.1). Round blocks are random; dashed arrows are gradients. Above, the "
    "gradient does not pass the sample; below, the sample is a differentiable function of μ, σ and the noise ε."
)
PHASES = (
    "Training of a variational autoencoder and sampling from it (book fig. 5.1): sampling uses the prior and the "
    "decoder only. The reconstruction loss compares x̂ with x, the variational loss q(z|x) with N(0, I)."
)
ERRORS = (
    "The error of every unbiased estimator decreases with the square root of the number of draws, with different "
    "constants; that of fixed samples does not decrease. Finite differences with common noise (not shown) coincide "
    "with reparametrisation."
)
ASCENT = (
    "Gradient ascent on q with few draws per step; the dashed line is the maximum ELBO of a diagonal q. "
    "Reparametrisation, analytic KL and Bonnet-Price converge; the score function fluctuates below the maximum; with "
    "fixed samples the ELBO does not improve."
)
