"""Unit balls of p-norms, and randomised counterexamples to the norm axioms for other functions (Zhao sec. 2)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.losses.norms import Norm, find_norm_violation, l1_norm, l2_norm, p_norm
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.report.style import remove_frame
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D0.1", "Z2.2", "Z2.3", "Z2.4")
expected = {
    "norms_refuted": at_most(0.0, "number of norms for which a counterexample was found"),
    "others_refuted": between(
        4.0, 4.0, "number of counterexamples found for ℓ½, squared length, number of nonzeros and printed ℓ¹"
    ),
    "half_norm_of_sum": between(4.0, 4.0, "‖e₁ + e₂‖ for p = ½, though ‖e₁‖ + ‖e₂‖ = 2"),
    "manhattan_distance": between(7.0, 7.0, "Manhattan distance of (0, 0) and (3, −4)"),
    "euclidean_distance": between(5.0, 5.0, "Euclidean distance of (0, 0) and (3, −4)"),
    "max_increase_with_p": at_most(0.0, "maximum increase of a p-norm from one p to the next"),
    "max_norm_ratio": between(0.9, 1.0, "maximum of ‖x‖₁ / (√n ‖x‖₂), at most 1"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_trials": 200}, "gpu": {}}

CANDIDATES: dict[str, tuple[Norm, bool]] = {
    "ℓ¹": (l1_norm, True),
    "ℓ²": (l2_norm, True),
    "ℓ³": (partial(p_norm, order=3.0), True),
    "ℓ∞": (partial(p_norm, order=torch.inf), True),
    "ℓ½": (lambda x: x.abs().sqrt().sum(-1).square(), False),
    "squared length": (lambda x: x.square().sum(-1), False),
    "number of nonzeros": (lambda x: (x != 0).double().sum(-1), False),
    "ℓ¹ as printed, Σ xᵢ": (lambda x: x.sum(-1), False),
}
ORDERS = (0.5, 1.0, 1.5, 2.0, 4.0, torch.inf)


@dataclass(frozen=True)
class Experiment:
    num_trials: Positive[int] = 2_000  # random vectors, and pairs of vectors, tested

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        violations = {
            name: find_norm_violation(f, 4, generator=generator, num_trials=self.num_trials)
            for name, (f, _) in CANDIDATES.items()
        }
        run.figure(
            "unit balls",
            plot_unit_balls(),
            "Unit balls of ℓᵖ. For p ≥ 1 the ball is convex and grows with p towards the square. For p = ½ it is not "
            "convex: e₁ and e₂ have length 1 but their sum has length 4, which violates the triangle inequality "
            "(cross: the midpoint of e₁ and e₂ lies outside).",
        )
        figure, axes = subplots(1, 2, size=(10.0, 3.9))
        plot_manhattan_paths(axes[0, 0])
        rise = plot_norms_by_order(axes[0, 1], generator)
        run.figure(
            "norms of vectors",
            figure,
            "Left: every monotone axis-parallel path from (0, 0) to (3, −4) has length 7, the straight line 5. Right: "
            "p-norms of some vectors divided by their largest entry, which is the limit for p → ∞.",
        )
        run.table(
            "candidates",
            [
                {
                    "candidate": name,
                    "violated axiom": "none found" if each is None else each.axiom,
                    "left side": "" if each is None else f"{each.left:.3g}",
                    "right side": "" if each is None else f"{each.right:.3g}",
                }
                for name, each in violations.items()
            ],
            f"Norm axioms tested on {self.num_trials:,} random vectors. Only a counterexample is conclusive.",
        )
        refuted = [name for name, violation in violations.items() if violation is not None]
        x = torch.randn(1_000, 6, generator=generator, dtype=torch.float64)
        vector = torch.tensor([3.0, -4.0], dtype=torch.float64)
        e = torch.eye(2, dtype=torch.float64)
        return {
            "norms_refuted": float(sum(CANDIDATES[name][1] for name in refuted)),
            "others_refuted": float(sum(not CANDIDATES[name][1] for name in refuted)),
            "half_norm_of_sum": float(CANDIDATES["ℓ½"][0](e[0] + e[1])),
            "manhattan_distance": float(l1_norm(vector)),
            "euclidean_distance": float(l2_norm(vector)),
            "max_increase_with_p": rise,
            "max_norm_ratio": float((l1_norm(x) / (6**0.5 * l2_norm(x))).max()),
        }


def lp_length(x: Tensor, order: float) -> Tensor:
    """(Σ |xᵢ|ᵖ)^(1/p), also for p < 1, where it is not a norm."""
    return p_norm(x, order=order) if order >= 1 else x.abs().pow(order).sum(-1).pow(1 / order)


def plot_unit_balls() -> "Figure":
    figure, axes = subplots(1, len(ORDERS), size=(12.5, 2.6))
    line = torch.linspace(-1.25, 1.25, 251, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    for ax, order, colour in zip(axes[0], ORDERS, PALETTE, strict=False):
        length = lp_length(points, order)
        ax.contourf(line, line, length, levels=[-1.0, 1.0], colors=[colour], alpha=0.45)
        ax.contour(line, line, length, levels=[1.0], colors=[colour], linewidths=1.4)
        ax.set(title=f"p = {order:g}".replace("inf", "∞").replace("0.5", "½"), aspect="equal")
        remove_frame(ax)
    axes[0, 0].plot([0, 1], [1, 0], color=INK, marker="o", markersize=4, linewidth=1.2)
    axes[0, 0].plot(0.5, 0.5, "x", color=INK, markersize=7, markeredgewidth=2)
    return figure


def plot_manhattan_paths(ax: "Axes") -> None:
    for path, name in (
        (((0, 3, 3), (0, 0, -4)), "7 (both paths)"),
        (((0, 0, 1, 1, 2, 2, 3, 3), (0, -1, -1, -2, -2, -3, -3, -4)), ""),
    ):
        ax.plot(*path, color=PALETTE[0], linewidth=2, label=f"ℓ¹: {name}" if name else None)
    ax.plot((0, 3), (0, -4), color=PALETTE[1], linewidth=2, label="ℓ²: 5")
    ax.plot((0, 3), (0, -4), "o", color=INK, markersize=5)
    ax.set(
        xticks=range(-1, 5),
        yticks=range(-5, 2),
        xlim=(-1, 4),
        ylim=(-5, 1),
        aspect="equal",
        title="ℓ¹ and ℓ² length of (3, −4)",
    )
    ax.legend(loc="lower left")


def plot_norms_by_order(ax: "Axes", generator: torch.Generator) -> float:
    """Plot norms against p; returns the largest increase from one p to the next, which must not be positive."""
    orders = torch.logspace(0, 1.5, 40, dtype=torch.float64)
    vectors = {
        "(3, −4)": torch.tensor([3.0, -4.0], dtype=torch.float64),
        "six ones": torch.ones(6, dtype=torch.float64),
        "e₁": torch.eye(6, dtype=torch.float64)[0],
        "six normal samples": torch.randn(6, generator=generator, dtype=torch.float64),
    }
    rises = []
    for (name, x), colour in zip(vectors.items(), PALETTE, strict=False):
        lengths = torch.stack([p_norm(x, order=float(order)) for order in orders])
        ax.semilogx(orders, lengths / x.abs().max(), color=colour, label=name)
        rises.append(float(lengths.diff().max()))
    ax.axhline(1, color=FAINT, linestyle=":", linewidth=1)
    ax.set(xlabel="p", title="‖x‖ₚ / max |xᵢ|", xticks=(1, 2, 4, 8, 16, 32))
    ax.set_xticklabels(["1", "2", "4", "8", "16", "32"])
    ax.legend()
    return max(rises)
