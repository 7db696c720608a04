"""Six ways to the gradient of the ELBO: one mean, variances far apart (Diehl sec. 6, book fig. 6.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import grad, vmap

from parnassus.latent import LinearGaussian
from parnassus.latent.gradients import (
    Estimator,
    NormalParameters,
    by_curvature,
    by_differences,
    held_fixed,
    reparametrised,
    score_function,
    score_function_with_baseline,
    with_analytic_kl,
)
from parnassus.report import FAINT, curves, draw_blocks, subplots
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B5.2-1", "B5.2-4", "B6.3-1", "D6.0.15", "D6.0.16", "D6.0.17", "D6.0.18")
expected = {
    "largest_bias": at_most(4.5, "bias of any unbiased way, in standard errors, the worst over its coordinates"),
    "bias_of_held_fixed": at_least(100.0, "the same for draws held fixed, whose mean is 0"),
    "rms_exponent": between(-0.55, -0.45, "power of the number of draws at which the error of paths falls"),
    "score_by_path": at_least(20.0, "variance of the score function over that of paths"),
    "baseline_by_path": at_least(3.0, "the same with the mean of the other draws as baseline"),
    "gap_path": at_most(0.05, "nats below the best bound after ascent along paths"),
    "gap_score": reported("the same by the score function"),
    "gap_held_fixed": at_least(1.0, "the same with draws held fixed"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"draws": 1_000, "steps": 10, "repeats": 5}, "gpu": {}}

WAYS: dict[str, Estimator] = {
    "held fixed": held_fixed,
    "differences": by_differences,
    "paths": reparametrised,
    "exact KL": with_analytic_kl,
    "curvature": by_curvature,
    "score function": score_function,
    "score, baseline": score_function_with_baseline,
}


@dataclass(frozen=True)
class Experiment:
    latent: int = 4  # size of the code
    features: int = 8  # numbers observed
    draws: int = 40_000  # draws from which means and variances are measured
    repeats: int = 200  # estimates behind every point of the curves
    steps: int = 400  # steps of ascent
    at_once: int = 16  # draws in each of them
    rate: float = 0.02  # learning rate of the ascent

    def __call__(self, run: Run) -> dict[str, float]:
        problem = Problem.of_size(self.features, self.latent)
        run.figure("where chance enters", chance_moved(), CHANCE)
        run.figure("training and generating", two_phases(), PHASES)

        exact = torch.cat(problem.gradient(problem.start))
        noise = torch.randn(self.draws, self.latent, dtype=torch.float64)
        rows = {name: torch.cat(way(problem.log_likelihood, problem.start, noise), 1) for name, way in WAYS.items()}
        bias = {
            name: float(((row.mean(0) - exact).abs() / (row.std(0) / self.draws**0.5).clamp(min=1e-9)).max())
            for name, row in rows.items()
        }
        variance = {name: row.var(0) for name, row in rows.items()}
        run.table(
            "seven estimates of one gradient",
            [
                {
                    "way": name,
                    "needs": NEEDS[name],
                    "bias, standard errors": round(bias[name], 1),
                    "variance in μ": float(f"{float(variance[name][: self.latent].sum()):.3g}"),
                    "variance in log σ²": float(f"{float(variance[name][self.latent :].sum()):.3g}"),
                }
                for name in WAYS
            ],
            f"From {self.draws:,} draws at the same place; variances are those of one draw, summed over coordinates.",
        )
        counts = [2**power for power in range(1, 9)]
        errors = {name: self.errors(way, problem, exact, counts) for name, way in WAYS.items()}
        shown = {name: (counts, error) for name, error in errors.items() if name != "differences"}
        figure = curves(shown, x_label="draws in one estimate", y_label="distance from ∇L", log_x=True, log_y=True)
        run.figure("error and draws", figure, ERRORS)

        paths = {name: self.ascend(way, problem) for name, way in WAYS.items() if name != "differences"}
        step = range(self.steps + 1)
        figure = curves({name: (step, path) for name, path in paths.items()}, x_label="step", y_label="ELBO, nats")
        best = problem.best_bound()
        figure.axes[0].axhline(best, color=FAINT, linestyle="--", linewidth=1)
        low = float(min(path[0] for path in paths.values()))
        figure.axes[0].set_ylim(low - 0.3 * (best - low), best + 0.08 * (best - low))
        run.figure("ascent", figure, ASCENT)

        total = {name: float(value.sum()) for name, value in variance.items()}
        run.note(
            "what to see",
            f"All ways but the first agree in the mean. One draw of the score function varies "
            f"{total['score function'] / total['paths']:.0f} times as much as a draw along the path, with a baseline "
            f"{total['score, baseline'] / total['paths']:.1f} times; so many more draws it takes. Differences with "
            "common noise equal paths and cost two runs a parameter.",
        )
        log_count, log_error = torch.tensor(counts).double().log(), errors["paths"].log()
        centred = log_count - log_count.mean()
        return {
            "largest_bias": max(value for name, value in bias.items() if name != "held fixed"),
            "bias_of_held_fixed": bias["held fixed"],
            "rms_exponent": float(centred @ log_error / (centred @ centred)),
            "score_by_path": total["score function"] / total["paths"],
            "baseline_by_path": total["score, baseline"] / total["paths"],
            "gap_path": best - float(paths["paths"][-1]),
            "gap_score": best - float(paths["score function"][-1]),
            "gap_held_fixed": best - float(paths["held fixed"][-1]),
        }

    def errors(self, way: Estimator, problem: "Problem", exact: Tensor, counts: list[int]) -> Tensor:
        """The root-mean-square distance between an average over so many draws and the exact gradient."""
        found = []
        for count in counts:
            noise = torch.randn(self.repeats, count, self.latent, dtype=torch.float64)
            means = vmap(lambda rows: torch.cat(way(problem.log_likelihood, problem.start, rows), 1).mean(0))(noise)
            found.append((means - exact).square().sum(1).mean().sqrt())
        return torch.stack(found)

    def ascend(self, way: Estimator, problem: "Problem") -> Tensor:
        """The exact ELBO along an ascent that sees only estimates from a few draws."""
        q, bounds = problem.start, [problem.elbo(problem.start)]
        for _ in range(self.steps):
            slopes = way(problem.log_likelihood, q, torch.randn(self.at_once, self.latent, dtype=torch.float64))
            q = NormalParameters(*(part + self.rate * slope.mean(0) for part, slope in zip(q, slopes, strict=True)))
            bounds.append(problem.elbo(q))
        return torch.stack(bounds)


@dataclass(frozen=True)
class Problem:
    """One observation of a linear Gaussian model, and the q at which gradients are compared."""

    model: LinearGaussian
    x: Tensor
    start: NormalParameters

    @classmethod
    def of_size(cls, features: int, latent: int) -> "Problem":
        weight = torch.randn(features, latent, dtype=torch.float64) / latent**0.5
        model = LinearGaussian(weight, torch.zeros(features).double(), torch.eye(features, dtype=torch.float64))
        start = NormalParameters(torch.zeros(latent, dtype=torch.float64), torch.zeros(latent, dtype=torch.float64))
        return cls(model, model.evidence.sample(), start)

    @property
    def log_likelihood(self) -> Callable[[Tensor], Tensor]:
        def log_likelihood(z: Tensor) -> Tensor:
            value: Tensor = self.model.likelihood(z).log_prob(self.x)
            return value

        return log_likelihood

    def elbo(self, q: NormalParameters) -> Tensor:
        return self.model.elbo(self.x[None], q.mean[None], q.log_variance.exp().diag()[None])[0]

    def gradient(self, q: NormalParameters) -> NormalParameters:
        slopes: NormalParameters = grad(self.elbo)(q)
        return slopes

    def best_bound(self) -> float:
        """The greatest ELBO of a diagonal q: the posterior's mean, and one over the diagonal of its precision."""
        posterior = self.model.posterior(self.x[None])
        variance = 1 / posterior.precision_matrix[0].diagonal()
        return float(self.elbo(NormalParameters(posterior.mean[0], variance.log())))


def chance_moved() -> "Figure":
    """The draw of a code as a node without gradient, and as a function of noise (book fig. 6.1)."""
    figure, axes = subplots(2, 1, size=(7.4, 3.8))
    axes[0, 0].get_gridspec().set_height_ratios([1, 2])
    straight = {"encoder": (0.0, 0.0), "μ, σ": (2.0, 0.0), "z ~ N(μ, σ²)": (4.1, 0.0), "loss": (6.2, 0.0)}
    along = [("encoder", "μ, σ"), ("μ, σ", "z ~ N(μ, σ²)"), ("z ~ N(μ, σ²)", "loss")]
    draw_blocks(
        axes[0, 0],
        straight,
        along,
        random=["z ~ N(μ, σ²)"],
        gradients=[("loss", "z ~ N(μ, σ²)")],
        blocked=[("z ~ N(μ, σ²)", "μ, σ")],
    )
    moved = {"encoder": (0.0, 0.0), "μ, σ": (2.0, 0.0), "z = μ + σ ε": (4.1, 0.0), "loss": (6.2, 0.0)}
    moved["ε ~ N(0, 1)"] = (4.1, 1.2)
    back = [("loss", "z = μ + σ ε"), ("z = μ + σ ε", "μ, σ"), ("μ, σ", "encoder")]
    forward = [(start, end) for end, start in back]
    draw_blocks(axes[1, 0], moved, [*forward, ("ε ~ N(0, 1)", "z = μ + σ ε")], random=["ε ~ N(0, 1)"], gradients=back)
    axes[0, 0].set_title("a draw stops the gradient")
    axes[1, 0].set_title("noise from outside lets it pass")
    axes[0, 0].set(xlim=axes[1, 0].get_xlim(), ylim=(-0.5, 0.5))
    axes[1, 0].set_ylim(-0.5, 1.5)
    return figure


def two_phases() -> "Figure":
    """What happens while a VAE is trained, and when it is used (book fig. 5.1)."""
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


NEEDS = {
    "held fixed": "one run, one slope",
    "differences": "two runs a parameter",
    "paths": "∇ log p(x, z)",
    "exact KL": "∇ log p(x|z), KL in closed form",
    "curvature": "∇ and ∇² log p(x, z)",
    "score function": "log p(x, z) only",
    "score, baseline": "log p(x, z) only, two draws or more",
}
CHANCE = (
    "The reparametrisation trick (book fig. 6.1). Round blocks are drawn at random; dashed arrows are gradients. "
    "Above none gets past the draw; below the draw is a function of μ and σ, and chance is one more input."
)
PHASES = (
    "A variational autoencoder while it is trained and when it is used (book fig. 5.1): new examples need the prior "
    "and the decoder only. The reconstruction loss compares x̂ with x, the variational loss q(z|x) with N(0, I)."
)
ERRORS = (
    "Every unbiased way errs by a constant over the root of the number of draws; what differs is the constant. With "
    "the draws held fixed no number of draws helps. Differences with common noise lie on the line of the paths."
)
ASCENT = (
    "Gradient ascent on q with a few draws a step; the dashed line is the best bound of a diagonal q. Paths, exact KL "
    "and curvature arrive; the score function trembles below the top; with draws held fixed q learns nothing."
)
