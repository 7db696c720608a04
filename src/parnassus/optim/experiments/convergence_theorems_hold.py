"""Bound and curve of every convergence theorem, and what breaks without its assumption (book sec. 3.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.optim import (
    Problem,
    convex_bound,
    convex_worst,
    egg_box,
    ellipse,
    first_order_decrease,
    flattest_slope_bound,
    gradient_descent,
    largest_coordinate,
    least_decrease,
    quadratic,
    quartic,
    slowest,
    smooth_problems,
    strongly_convex_bound,
    strongly_convex_worst,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("B3.1-2", "B3.1-3", "B3.1-4", "B3.1-5", "D1.5.4")
expected = {
    "gain_over_promise": at_least(0.999999, "gain of a step over what the descent lemma grants, at least"),
    "slope_over_bound": at_most(1.0, "least ‖∇f‖² on the way over its bound, at most"),
    "strongly_convex_ratio": at_most(1.000001, "excess over the geometric bound, at most"),
    "convex_ratio": at_most(1.0, "excess over the bound of convexity alone, at most"),
    "worst_case_ratio": between(0.999999999, 1.000000001, "excess of the slowest function over the exact worst case"),
    "broken_geometric": at_least(1.0, "w⁴ over a geometric bound that does not hold of it"),
    "broken_convex": at_least(1.0, "least excess of three others over the bound of convexity, in the end"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 100}, "gpu": {}}

Lines = Mapping[str, Tensor]
ROUNDING = 1e-12  # excesses below this are rounding


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_000  # steps of descent

    def __call__(self, run: Run) -> dict[str, float]:
        problems = smooth_problems(run.seed)
        spectrum = torch.logspace(-6, 0, 100, dtype=torch.float64)
        problems["flat quadratic"] = quadratic(spectrum, generator=torch.Generator().manual_seed(run.seed))
        paths = {
            name: gradient_descent(problem.loss, problem.start, rate=1 / problem.beta, steps=self.steps)
            for name, problem in problems.items()
        }
        result = self.descent_lemma(run, problems, paths)
        result |= self.strongly_convex(run, problems, paths)
        result |= self.convex(run, problems, paths)
        run.note(
            "what to see",
            f"Every theorem holds on every problem that meets its assumption. How tight? The slowest Huber loss is at "
            f"{result['worst_case_ratio']:.3f} of the exact worst case β‖w⁽⁰⁾ − w*‖²/(4T + 2), a little less than half "
            "of the usual bound; the usual geometric bound has half the exponent it could have.",
        )
        return result

    def descent_lemma(self, run: Run, problems: Mapping[str, Problem], paths: Mapping[str, Tensor]) -> dict[str, float]:
        """Every step's gain against what the lemma grants; then the least slope on the way."""
        figure, axes = subplots(1, 2, size=(10.0, 4.0))
        least, slope_ratio = [], []
        t = counted(self.steps)
        for (name, problem), colour in zip(problems.items(), PALETTE, strict=False):
            path = paths[name]
            gain = -problem.excess(path).diff()
            granted = least_decrease(problem, path[:-1], rate=1 / problem.beta)
            known = granted > ROUNDING
            least.append((gain / granted)[known].min())
            axes[0, 0].semilogx(t[known], (gain / granted)[known], color=colour, label=name)
            slopes = first_order_decrease(problem, path[:-1], rate=1.0).cummin(0).values
            slope_ratio.append((slopes / flattest_slope_bound(problem, t)).max())
            axes[0, 1].loglog(t, (slopes / (2 * problem.beta * problem.excess(path[:1]))).clamp(min=1e-9), color=colour)
        axes[0, 0].axhline(1, color=INK, linestyle="--", linewidth=1)
        axes[0, 0].set(xlabel="step", title="gain of each step, over ‖∇f‖²/(2β)", ylim=(0.9, 2.9))
        axes[0, 0].legend(loc="upper right", ncols=2, fontsize=8)
        axes[0, 1].loglog(t, 1 / t, color=INK, linestyle="--", linewidth=1)
        axes[0, 1].set(xlabel="steps T", title="least ‖∇f‖² so far, over 2β(f(w⁽⁰⁾) − f*)", ylim=(1e-9, 2))
        run.figure(
            "the descent lemma",
            figure,
            "Left: no step of descent with η = 1/β gains less than the lemma grants (dashed), on convex problems and "
            "on the egg box, which is not convex; in flat directions it gains twice as much. Right: hence some slope "
            "among T is below the dashed 1/T.",
        )
        return {"gain_over_promise": float(min(least)), "slope_over_bound": float(max(slope_ratio))}

    def strongly_convex(
        self, run: Run, problems: Mapping[str, Problem], paths: Mapping[str, Tensor]
    ) -> dict[str, float]:
        """Straight lines on a logarithmic scale, and w⁴, whose line bends."""
        figure, axes = subplots(1, 2, size=(10.0, 4.0))
        t = counted(self.steps)
        ratios = []
        for name, colour in zip(("ellipse", "ridge logistic"), PALETTE, strict=False):
            problem = problems[name]
            excess, bound = problem.excess(paths[name])[1:], strongly_convex_bound(problem, t)
            ratios.append((excess / bound)[excess > ROUNDING].max())
            shown = excess.clamp(min=ROUNDING)
            axes[0, 0].semilogy(t, shown, color=colour, label=name)
            axes[0, 0].semilogy(t, bound, color=colour, linestyle="--", linewidth=1.2)
            axes[0, 0].semilogy(t, strongly_convex_worst(problem, t), color=colour, linestyle=":", linewidth=1.2)
        axes[0, 0].set(xlabel="steps T", title="excess f − f*", ylim=(ROUNDING, 30), xlim=(0, min(self.steps, 350)))
        styled(axes[0, 0], {"(1 − α/β)ᵀ": "--", "(1 − α/β)²ᵀ, exact": ":"})
        pretender = replace(quartic(torch.ones(1, dtype=torch.float64)), alpha=0.06)
        excess = pretender.excess(
            gradient_descent(pretender.loss, pretender.start, rate=1 / pretender.beta, steps=self.steps)
        )[1:]
        bound = strongly_convex_bound(pretender, t)
        axes[0, 1].semilogy(t, excess, color=PALETTE[1], label="w⁴/4")
        axes[0, 1].semilogy(t, bound, color=PALETTE[1], linestyle="--", linewidth=1.2, label="bound if α were 0.06")
        axes[0, 1].set(xlabel="steps T", title="not strongly convex", ylim=(1e-9, 1))
        axes[0, 1].legend()
        run.figure(
            "strong convexity",
            figure,
            "Left: with curvature between α and β the excess falls geometrically, below the theorem's dashed line and "
            "below the dotted one, the least that holds for all such functions; the ellipse runs along it. Right: w⁴ "
            "is flat at its minimum; its "
            "excess falls like a power of T and crosses every geometric bound.",
        )
        return {
            "strongly_convex_ratio": float(max(ratios)),
            "broken_geometric": float((excess / bound)[-1]),
        }

    def convex(self, run: Run, problems: Mapping[str, Problem], paths: Mapping[str, Tensor]) -> dict[str, float]:
        """All convex problems below one line, the slowest ones touching the exact line, three others above."""
        figure, axes = subplots(1, 3, size=(12.0, 4.0))
        t = counted(self.steps)
        held: dict[str, Tensor] = {}
        for name, problem in problems.items():
            if problem.alpha >= 0:
                held[name] = relative(problem, paths[name])
        scale = slowest(0.0)  # any problem with β = 1 and ‖w⁽⁰⁾ − w*‖ = 1
        bound, worst = convex_bound(scale, t, rate=1.0), convex_worst(scale, t, rate=1.0)
        drawn(axes[0, 0], t, {name: excess.clamp(min=1e-8) for name, excess in held.items()})
        touch, lengths = {}, [length for length in (3, 10, 30, 100, 300) if length <= self.steps]
        for length in lengths:
            problem = slowest(float(length))
            touch[f"T = {length}"] = relative(
                problem, gradient_descent(problem.loss, problem.start, rate=1.0, steps=self.steps)
            )
        drawn(axes[0, 1], t, {name: excess.clamp(min=1e-8) for name, excess in touch.items()})
        attained = torch.stack([touch[f"T = {length}"][length - 1] for length in lengths])
        others = self.others()
        drawn(axes[0, 2], t, {name: excess.clamp(max=1e4) for name, excess in others.items()})
        for ax, title in zip(axes[0], ("convex", "the slowest for T steps", "an assumption dropped"), strict=True):
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
            "Middle: for every T there is a Huber loss that touches the dotted line at T. Right: with too large a "
            "rate, without convexity or without smoothness no such line holds.",
        )
        return {
            "convex_ratio": float(torch.stack([(each / bound).max() for each in held.values()]).max()),
            "worst_case_ratio": float((attained / worst[[length - 1 for length in lengths]]).max()),
            "broken_convex": float(min((each / bound)[-1] for each in others.values())),
        }

    def others(self) -> dict[str, Tensor]:
        """Excess over β‖w⁽⁰⁾ − w*‖² where the theorem does not apply."""
        bowl = ellipse(25.0)
        box = egg_box(torch.tensor([3.2, -3.0], dtype=torch.float64))  # near one of its false minima
        sharp = replace(largest_coordinate(torch.tensor([0.95], dtype=torch.float64)), beta=10.0)
        too_large = gradient_descent(bowl.loss, bowl.start, rate=2.04 / bowl.beta, steps=self.steps)
        return {
            "ellipse, η = 2.04/β": relative(bowl, too_large),
            "egg box, not convex": relative(
                box, gradient_descent(box.loss, box.start, rate=1 / box.beta, steps=self.steps)
            ),
            "|w|, η = 0.1": relative(sharp, gradient_descent(sharp.loss, sharp.start, rate=0.1, steps=self.steps)),
        }


def counted(steps: int) -> Tensor:
    return torch.arange(1, steps + 1, dtype=torch.float64)


def relative(problem: Problem, path: Tensor) -> Tensor:
    """Excess after 1, 2, … steps over β‖w⁽⁰⁾ − w*‖², so that one bound serves all problems."""
    return problem.excess(path)[1:] / (problem.beta * problem.radius**2)


def drawn(ax: "Axes", t: Tensor, lines: Lines) -> None:
    for (name, values), colour in zip(lines.items(), PALETTE, strict=False):
        ax.loglog(t, values, color=colour, label=name)


def styled(ax: "Axes", styles: Mapping[str, str]) -> None:
    """A legend in which line styles have names too."""
    for name, style in styles.items():
        ax.plot([], [], color=FAINT, linestyle=style, linewidth=1.2, label=name)
    ax.legend(fontsize=8)
