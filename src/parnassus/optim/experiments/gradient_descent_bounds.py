"""Gradient descent bounds: measured convergence against the bounds of convergence theorems (book sec. 3.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.optim import (
    OptimisationProblem,
    convex_bound,
    convex_worst_case,
    descent_lemma_decrease,
    egg_box,
    ellipse,
    first_order_decrease,
    gradient_descent,
    huber_worst_case,
    infinity_norm,
    min_squared_gradient_bound,
    quadratic,
    quartic,
    smooth_problems,
    strongly_convex_bound,
    strongly_convex_worst_case,
)
from parnassus.optim.convexity.convergence_bounds import step_counts
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("B3.1-2", "B3.1-3", "B3.1-4", "B3.1-5", "D1.5.4")
expected = {
    "decrease_bound_ratio": at_least(
        0.999999, "minimum ratio of the decrease per step to the bound of the descent lemma"
    ),
    "squared_gradient_bound_ratio": at_most(1.0, "maximum ratio of min ‖∇f‖² to its bound"),
    "strongly_convex_bound_ratio": at_most(
        1.000001, "maximum ratio of the suboptimality to the bound for strongly convex functions"
    ),
    "convex_bound_ratio": at_most(1.0, "maximum ratio of the suboptimality to the bound for convex functions"),
    "worst_case_bound_ratio": between(
        0.999999999, 1.000000001, "ratio of the suboptimality of the worst-case Huber loss to the exact bound"
    ),
    "quartic_bound_ratio": at_least(
        1.0, "ratio of the suboptimality of w⁴ to a linear-convergence bound that does not apply"
    ),
    "violated_assumption_bound_ratio": at_least(
        1.0, "minimum ratio of the suboptimality to the convex bound where an assumption fails"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100}, "gpu": {}}

Lines = Mapping[str, Tensor]
ROUNDING = 1e-12  # a suboptimality below this is rounding error


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_000  # steps of gradient descent

    def __call__(self, run: Run) -> dict[str, float]:
        problems = smooth_problems(run.seed)
        spectrum = torch.logspace(-6, 0, 100, dtype=torch.float64)
        problems["flat quadratic"] = quadratic(spectrum, generator=torch.Generator().manual_seed(run.seed))
        paths = {
            name: gradient_descent(problem.loss, problem.start, learning_rate=1 / problem.beta, steps=self.steps)
            for name, problem in problems.items()
        }
        result = self.compare_descent_lemma(run, problems, paths)
        result |= self.compare_strongly_convex(run, problems, paths)
        result |= self.compare_convex(run, problems, paths)
        run.note(
            "results",
            "Every bound holds on every problem that meets its assumptions. The worst-case Huber loss attains "
            f"{result['worst_case_bound_ratio']:.3f} of the exact bound β‖w⁽⁰⁾ − w*‖²/(4T + 2), which is slightly less "
            "than half of the usual bound; the usual bound for strongly convex functions has half the optimal "
            "exponent.",
        )
        return result

    def compare_descent_lemma(
        self, run: Run, problems: Mapping[str, OptimisationProblem], paths: Mapping[str, Tensor]
    ) -> dict[str, float]:
        """Compare the decrease of every step, and the smallest gradient, with their bounds."""
        figure, axes = subplots(1, 2, size=(10.0, 4.0))
        decrease_ratios, gradient_ratios = [], []
        t = step_counts(self.steps)
        for (name, problem), colour in zip(problems.items(), PALETTE, strict=False):
            path = paths[name]
            decrease = -problem.excess(path).diff()
            bound = descent_lemma_decrease(problem, path[:-1], learning_rate=1 / problem.beta)
            is_significant = bound > ROUNDING
            ratio = (decrease / bound)[is_significant]
            decrease_ratios.append(ratio.min())
            axes[0, 0].semilogx(t[is_significant], ratio, color=colour, label=name)
            smallest = first_order_decrease(problem, path[:-1], learning_rate=1.0).cummin(0).values
            gradient_ratios.append((smallest / min_squared_gradient_bound(problem, t)).max())
            scale = 2 * problem.beta * problem.excess(path[:1])
            axes[0, 1].loglog(t, (smallest / scale).clamp(min=1e-9), color=colour)
        axes[0, 0].axhline(1, color=INK, linestyle="--", linewidth=1)
        axes[0, 0].set(xlabel="step", title="decrease per step, over ‖∇f‖²/(2β)", ylim=(0.9, 2.9))
        axes[0, 0].legend(loc="upper right", ncols=2, fontsize=8)
        axes[0, 1].loglog(t, 1 / t, color=INK, linestyle="--", linewidth=1)
        axes[0, 1].set(xlabel="steps T", title="min ‖∇f‖² so far, over 2β(f(w⁽⁰⁾) − f*)", ylim=(1e-9, 2))
        run.figure(
            "the descent lemma",
            figure,
            "Left: with η = 1/β every step decreases f by at least the bound of the lemma (dashed), on convex problems "
            "and on the non-convex egg box; in directions of low curvature by twice as much. Right: hence the smallest "
            "of T squared gradients is below the dashed 1/T.",
        )
        return {
            "decrease_bound_ratio": float(min(decrease_ratios)),
            "squared_gradient_bound_ratio": float(max(gradient_ratios)),
        }

    def compare_strongly_convex(
        self, run: Run, problems: Mapping[str, OptimisationProblem], paths: Mapping[str, Tensor]
    ) -> dict[str, float]:
        """Compare strongly convex problems, and w⁴, which is not, with the linear-convergence bound."""
        figure, axes = subplots(1, 2, size=(10.0, 4.0))
        t = step_counts(self.steps)
        ratios = []
        for name, colour in zip(("ellipse", "ridge logistic"), PALETTE, strict=False):
            problem = problems[name]
            excess, bound = problem.excess(paths[name])[1:], strongly_convex_bound(problem, t)
            ratios.append((excess / bound)[excess > ROUNDING].max())
            axes[0, 0].semilogy(t, excess.clamp(min=ROUNDING), color=colour, label=name)
            axes[0, 0].semilogy(t, bound, color=colour, linestyle="--", linewidth=1.2)
            axes[0, 0].semilogy(t, strongly_convex_worst_case(problem, t), color=colour, linestyle=":", linewidth=1.2)
        axes[0, 0].set(
            xlabel="steps T", title="suboptimality f − f*", ylim=(ROUNDING, 30), xlim=(0, min(self.steps, 350))
        )
        add_line_style_legend(axes[0, 0], {"(1 − α/β)ᵀ": "--", "(1 − α/β)²ᵀ, exact": ":"})
        flat = replace(quartic(torch.ones(1, dtype=torch.float64)), alpha=0.06)  # its α is 0
        path = gradient_descent(flat.loss, flat.start, learning_rate=1 / flat.beta, steps=self.steps)
        excess, bound = flat.excess(path)[1:], strongly_convex_bound(flat, t)
        axes[0, 1].semilogy(t, excess, color=PALETTE[1], label="w⁴/4")
        axes[0, 1].semilogy(t, bound, color=PALETTE[1], linestyle="--", linewidth=1.2, label="bound if α were 0.06")
        axes[0, 1].set(xlabel="steps T", title="not strongly convex", ylim=(1e-9, 1))
        axes[0, 1].legend()
        run.figure(
            "strong convexity",
            figure,
            "Left: with curvature between α and β, f − f* converges linearly, below the theorem's bound (dashed) "
            "and the exact bound (dotted), which the ellipse follows. Right: w⁴ has no curvature at its minimum; its "
            "suboptimality decays as a power of T and exceeds every linear-convergence bound.",
        )
        return {
            "strongly_convex_bound_ratio": float(max(ratios)),
            "quartic_bound_ratio": float((excess / bound)[-1]),
        }

    def compare_convex(
        self, run: Run, problems: Mapping[str, OptimisationProblem], paths: Mapping[str, Tensor]
    ) -> dict[str, float]:
        """Compare convex problems, worst-case Huber losses and violated assumptions with the convex bound."""
        figure, axes = subplots(1, 3, size=(12.0, 4.0))
        t = step_counts(self.steps)
        convex: dict[str, Tensor] = {}
        for name, problem in problems.items():
            if problem.alpha >= 0:
                convex[name] = relative_excess(problem, paths[name])
        scale = huber_worst_case(0.0)  # any problem with β = 1 and ‖w⁽⁰⁾ − w*‖ = 1
        bound, worst = convex_bound(scale, t, learning_rate=1.0), convex_worst_case(scale, t, learning_rate=1.0)
        plot_lines(axes[0, 0], t, {name: excess.clamp(min=1e-8) for name, excess in convex.items()})
        huber, lengths = {}, [length for length in (3, 10, 30, 100, 300) if length <= self.steps]
        for length in lengths:
            problem = huber_worst_case(float(length))
            huber[f"T = {length}"] = relative_excess(
                problem, gradient_descent(problem.loss, problem.start, learning_rate=1.0, steps=self.steps)
            )
        plot_lines(axes[0, 1], t, {name: excess.clamp(min=1e-8) for name, excess in huber.items()})
        attained = torch.stack([huber[f"T = {length}"][length - 1] for length in lengths])
        violations = self.run_violations()
        plot_lines(axes[0, 2], t, {name: excess.clamp(max=1e4) for name, excess in violations.items()})
        titles = ("convex problems", "worst-case Huber losses", "assumption violated")
        for ax, title in zip(axes[0], titles, strict=True):
            ax.loglog(t, bound, color=INK, linestyle="--", linewidth=1.2)
            ax.loglog(t, worst, color=INK, linestyle=":", linewidth=1.2)
            ax.set(xlabel="steps", title=title, ylim=(1e-7, 30) if ax is not axes[0, 2] else (1e-4, 1e2))
            ax.legend(
                fontsize=8, loc="lower left" if ax is axes[0, 2] else "upper right", ncols=1 if ax is axes[0, 2] else 2
            )
        axes[0, 0].set_ylabel("(f − f*) / (β‖w⁽⁰⁾ − w*‖²)")
        run.figure(
            "convexity",
            figure,
            "Left: convex functions stay below 1/(2T), dashed, and below the exact worst case 1/(4T + 2), dotted. "
            "Middle: for every T a Huber loss attains the dotted line at T. Right: with too large a learning rate, "
            "without convexity or without smoothness the bound does not hold.",
        )
        return {
            "convex_bound_ratio": float(torch.stack([(each / bound).max() for each in convex.values()]).max()),
            "worst_case_bound_ratio": float((attained / worst[[length - 1 for length in lengths]]).max()),
            "violated_assumption_bound_ratio": float(min((each / bound)[-1] for each in violations.values())),
        }

    def run_violations(self) -> dict[str, Tensor]:
        """(f − f*) / (β‖w⁽⁰⁾ − w*‖²) of three problems that violate an assumption of the theorem."""
        valley = ellipse(25.0)
        box = egg_box(torch.tensor([3.2, -3.0], dtype=torch.float64))  # near a local minimum
        nonsmooth = replace(infinity_norm(torch.tensor([0.95], dtype=torch.float64)), beta=10.0)
        too_large = gradient_descent(valley.loss, valley.start, learning_rate=2.04 / valley.beta, steps=self.steps)
        return {
            "ellipse, η = 2.04/β": relative_excess(valley, too_large),
            "egg box, not convex": relative_excess(
                box, gradient_descent(box.loss, box.start, learning_rate=1 / box.beta, steps=self.steps)
            ),
            "|w|, η = 0.1": relative_excess(
                nonsmooth, gradient_descent(nonsmooth.loss, nonsmooth.start, learning_rate=0.1, steps=self.steps)
            ),
        }


def relative_excess(problem: OptimisationProblem, path: Tensor) -> Tensor:
    """(f − f*) / (β‖w⁽⁰⁾ − w*‖²) after 1, 2, … steps, so that one bound holds for all problems."""
    return problem.excess(path)[1:] / (problem.beta * problem.radius**2)


def plot_lines(ax: "Axes", t: Tensor, lines: Lines) -> None:
    for (name, values), colour in zip(lines.items(), PALETTE, strict=False):
        ax.loglog(t, values, color=colour, label=name)


def add_line_style_legend(ax: "Axes", styles: Mapping[str, str]) -> None:
    """Add a legend that also names line styles."""
    for name, style in styles.items():
        ax.plot([], [], color=FAINT, linestyle=style, linewidth=1.2, label=name)
    ax.legend(fontsize=8)
