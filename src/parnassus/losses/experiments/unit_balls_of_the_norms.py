"""What makes a norm, in pictures: a unit ball without dents, and a checker that finds the rest out (Zhao sec. 2)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.losses.norms import Norm, l1_norm, l2_norm, norm_violation, p_norm
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.report.ink import plain
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D0.1", "Z2.2", "Z2.3", "Z2.4")
expected = {
    "norms_refuted": at_most(0.0, "norms against which the checker found a witness"),
    "others_refuted": between(4.0, 4.0, "the same of ℓ½, the squared length, the count of nonzeros, the printed ℓ¹"),
    "half_of_a_sum": between(4.0, 4.0, "‖e₁ + e₂‖ for p = ½, though ‖e₁‖ + ‖e₂‖ = 2"),
    "manhattan": between(7.0, 7.0, "length of the way from (0, 0) to (3, −4) along the streets"),
    "euclid": between(5.0, 5.0, "the same as the crow flies"),
    "largest_rise_with_p": at_most(0.0, "by which a p-norm rose from one p to the next"),
    "largest_share_of_root_n": between(0.9, 1.0, "‖x‖₁ / (√n ‖x‖₂), at most 1"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"trials": 200}, "gpu": {}}

CANDIDATES: dict[str, tuple[Norm, bool]] = {
    "ℓ¹": (l1_norm, True),
    "ℓ²": (l2_norm, True),
    "ℓ³": (partial(p_norm, order=3.0), True),
    "ℓ∞": (partial(p_norm, order=torch.inf), True),
    "ℓ½": (lambda x: x.abs().sqrt().sum(-1).square(), False),
    "squared length": (lambda x: x.square().sum(-1), False),
    "count of nonzeros": (lambda x: (x != 0).double().sum(-1), False),
    "ℓ¹ as printed, Σ xᵢ": (lambda x: x.sum(-1), False),
}
ORDERS = (0.5, 1.0, 1.5, 2.0, 4.0, torch.inf)


@dataclass(frozen=True)
class Experiment:
    trials: int = 2_000  # random vectors, and pairs of them, that the checker tries

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        found = {
            name: norm_violation(f, 4, generator=generator, trials=self.trials) for name, (f, _) in CANDIDATES.items()
        }
        run.figure(
            "unit balls",
            draw_balls(),
            "All points of length at most 1. From p = 1 on the ball is convex, and grows towards the square. At p = ½ "
            "it is dented: e₁ and e₂ have length 1 and their sum has length 4, so that the way round is shorter than "
            "the straight one (cross: the middle of e₁ and e₂, outside).",
        )
        figure, axes = subplots(1, 2, size=(10.0, 3.9))
        draw_streets(axes[0, 0])
        rise = draw_orders(axes[0, 1], generator)
        run.figure(
            "lengths",
            figure,
            "Left: from (0, 0) to (3, −4) every way along the streets has length 7, the straight line 5. Right: the "
            "p-norms of some vectors, each divided by its largest entry, which is where they all go.",
        )
        run.table(
            "candidates",
            [
                {
                    "candidate": name,
                    "breaks": "nothing found" if each is None else each.axiom,
                    "left side": "" if each is None else f"{each.left:.3g}",
                    "right side": "" if each is None else f"{each.right:.3g}",
                }
                for name, each in found.items()
            ],
            f"What {self.trials:,} random vectors say. A broken axiom is a proof; none found is only a sign.",
        )
        x = torch.randn(1_000, 6, generator=generator, dtype=torch.float64)
        leg = torch.tensor([3.0, -4.0], dtype=torch.float64)
        e = torch.eye(2, dtype=torch.float64)
        return {
            "norms_refuted": float(sum(found[name] is not None for name, (_, norm) in CANDIDATES.items() if norm)),
            "others_refuted": float(sum(found[name] is not None for name, (_, norm) in CANDIDATES.items() if not norm)),
            "half_of_a_sum": float(CANDIDATES["ℓ½"][0](e[0] + e[1])),
            "manhattan": float(l1_norm(leg)),
            "euclid": float(l2_norm(leg)),
            "largest_rise_with_p": rise,
            "largest_share_of_root_n": float((l1_norm(x) / (6**0.5 * l2_norm(x))).max()),
        }


def power_length(x: Tensor, order: float) -> Tensor:
    """(Σ |xᵢ|ᵖ)^(1/p), also for p below 1, where it is no norm."""
    return p_norm(x, order=order) if order >= 1 else x.abs().pow(order).sum(-1).pow(1 / order)


def draw_balls() -> "Figure":
    figure, axes = subplots(1, len(ORDERS), size=(12.5, 2.6))
    line = torch.linspace(-1.25, 1.25, 251, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    for ax, order, colour in zip(axes[0], ORDERS, PALETTE, strict=False):
        length = power_length(points, order)
        ax.contourf(line, line, length, levels=[-1.0, 1.0], colors=[colour], alpha=0.45)
        ax.contour(line, line, length, levels=[1.0], colors=[colour], linewidths=1.4)
        ax.set(title=f"p = {order:g}".replace("inf", "∞").replace("0.5", "½"), aspect="equal")
        plain(ax)
    axes[0, 0].plot([0, 1], [1, 0], color=INK, marker="o", markersize=4, linewidth=1.2)
    axes[0, 0].plot(0.5, 0.5, "x", color=INK, markersize=7, markeredgewidth=2)
    return figure


def draw_streets(ax: "Axes") -> None:
    for way, name in (
        (((0, 3, 3), (0, 0, -4)), "7, by either"),
        (((0, 0, 1, 1, 2, 2, 3, 3), (0, -1, -1, -2, -2, -3, -3, -4)), ""),
    ):
        ax.plot(*way, color=PALETTE[0], linewidth=2, label=f"ℓ¹: {name}" if name else None)
    ax.plot((0, 3), (0, -4), color=PALETTE[1], linewidth=2, label="ℓ²: 5")
    ax.plot((0, 3), (0, -4), "o", color=INK, markersize=5)
    ax.set(
        xticks=range(-1, 5),
        yticks=range(-5, 2),
        xlim=(-1, 4),
        ylim=(-5, 1),
        aspect="equal",
        title="two lengths of (3, −4)",
    )
    ax.legend(loc="lower left")


def draw_orders(ax: "Axes", generator: torch.Generator) -> float:
    """Norms against p; the largest rise from one p to the next, which should be none."""
    orders = torch.logspace(0, 1.5, 40, dtype=torch.float64)
    named = {
        "(3, −4)": torch.tensor([3.0, -4.0], dtype=torch.float64),
        "six ones": torch.ones(6, dtype=torch.float64),
        "e₁": torch.eye(6, dtype=torch.float64)[0],
        "six normal numbers": torch.randn(6, generator=generator, dtype=torch.float64),
    }
    rises = []
    for (name, x), colour in zip(named.items(), PALETTE, strict=False):
        lengths = torch.stack([p_norm(x, order=float(order)) for order in orders])
        ax.semilogx(orders, lengths / x.abs().max(), color=colour, label=name)
        rises.append(float(lengths.diff().max()))
    ax.axhline(1, color=FAINT, linestyle=":", linewidth=1)
    ax.set(xlabel="p", title="‖x‖ₚ over the largest entry", xticks=(1, 2, 4, 8, 16, 32))
    ax.set_xticklabels(["1", "2", "4", "8", "16", "32"])
    ax.legend()
    return max(rises)
