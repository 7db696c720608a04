"""Batch norm and layer norm side by side: one formula, two ways to pool, and what each forgets (Diehl sec. 1.6)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.layers import moments, standardise
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.report.ink import DIVERGING
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("C-08", "D1.6.6", "D1.6.7", "D1.6.8", "Z8.2", "Z8.3")
expected = {
    "moved_by_neighbours_in_batch_norm": at_least(0.3, "change of an example's output when the others move by 10"),
    "moved_by_neighbours_in_layer_norm": at_most(0.0, "the same for layer norm"),
    "length_over_root_n": between(0.999, 1.0, "‖LN(x)‖/√n for vectors of variance near 1"),
    "length_law_error": at_most(1e-12, "distance of ‖LN(x)‖ from √(n v/(v + ε))"),
    "inside_over_outside": between(0.006, 0.0066, "spread left by √(var + ε) over that left by √var + ε, √var = ε"),
    "tutorial_rows_apart": at_most(1e-6, "by hand against the library, rows of features"),
    "tutorial_positions_apart": at_least(0.1, "the notes' batch norm against the library's, with positions"),
    "tutorial_pooled_apart": at_most(1e-6, "the same once positions are pooled too"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"draws": 4}, "gpu": {}}

EPSILON = 1e-5


@dataclass(frozen=True)
class Experiment:
    draws: int = 40  # vectors of each scale whose length is measured

    def __call__(self, run: Run) -> dict[str, float]:
        source = torch.Generator().manual_seed(run.seed)
        result = neighbours(run, source) | self.lengths(run, source) | tutorial(run, source)
        run.note(
            "what to see",
            "Both norms subtract a mean and divide by a spread. Batch norm takes them down each column, over the "
            "examples, so that an example's output depends on its neighbours; layer norm takes them along each row, "
            "over the features of one example, and all its outputs have length √n.",
        )
        return result

    def lengths(self, run: Run, source: torch.Generator) -> dict[str, float]:
        """‖LN(x)‖ against the spread of x, and what ε does inside and outside the root."""
        figure, axes = subplots(1, 2, size=(10.4, 3.9))
        scales = torch.logspace(-5, 1, 25, dtype=torch.float64)
        errors = []
        near_one = torch.tensor(0.0)
        for n, colour in zip((16, 64, 256), PALETTE, strict=False):
            x = scales[:, None, None] * torch.randn(25, self.draws, n, generator=source, dtype=torch.float64)
            v = moments(x, (-1,)).variance[..., 0]
            length = standardise(x, (-1,), epsilon=EPSILON).norm(dim=-1)
            errors.append((length - (n * v / (v + EPSILON)).sqrt()).abs().max())
            near_one = length[20].mean() / n**0.5  # the scale 1
            axes[0, 0].semilogx(scales, length.mean(1), color=colour, marker="o", markersize=3, label=f"n = {n}")
            axes[0, 0].axhline(n**0.5, color=FAINT, linestyle=":", linewidth=1.2)
        axes[0, 0].set(xlabel="spread of x", title="‖LN(x)‖", yticks=(0, 4, 8, 16))
        axes[0, 0].legend()
        unit = standardise(torch.randn(64, generator=source, dtype=torch.float64), (-1,), epsilon=0.0)
        inside = torch.stack([standardise(s * unit, (-1,), epsilon=EPSILON).std(correction=0) for s in scales])
        outside = scales / (scales + EPSILON)
        axes[0, 1].semilogx(scales, inside, color=PALETTE[0], label="√(var + ε)")
        axes[0, 1].semilogx(scales, outside, color=PALETTE[1], label="√var + ε, as printed")
        axes[0, 1].axvline(EPSILON**0.5, color=FAINT, linestyle=":", linewidth=1.2)
        axes[0, 1].set(xlabel="spread of x", title="spread after standardising, ε = 10⁻⁵")
        axes[0, 1].legend()
        run.figure(
            "lengths and epsilon",
            figure,
            "Left: what layer norm returns has length √n (dotted), until the spread of x falls below √ε. Right: inside "
            "the root ε silences spreads below √ε (dotted); outside it would let through all down to ε, and its "
            "gradient is not a number where the spread is 0.",
        )
        return {
            "length_over_root_n": float(near_one),
            "length_law_error": float(torch.stack(errors).max()),
            "inside_over_outside": float(inside[0] / outside[0]),
        }


def neighbours(run: Run, source: torch.Generator) -> dict[str, float]:
    """One array through both norms, before and after all examples but the first are moved."""
    features = torch.linspace(-2, 2, 10, dtype=torch.float64)
    x = torch.randn(6, 10, generator=source, dtype=torch.float64) * (0.3 + features.abs()) + 2 * features
    moved = x.clone()
    moved[1:] += 10 * torch.randn(5, 1, generator=source, dtype=torch.float64).sign()
    shown = {
        "x": x,
        "batch norm: each column by itself": standardise(x, (0,), epsilon=EPSILON),
        "layer norm: each row by itself": standardise(x, (-1,), epsilon=EPSILON),
    }
    figure, axes = subplots(1, 3, size=(12.0, 3.2))
    for ax, (name, values) in zip(axes[0], shown.items(), strict=True):
        picture(ax, values, name)
    axes[0, 0].set_ylabel("example")
    run.figure(
        "one array, two norms",
        figure,
        "Six examples of ten features (blue negative, red positive, each picture on its own scale). The features have "
        "their own place and spread: batch norm takes these away and leaves the differences between examples, layer "
        "norm keeps the pattern of the features in every row.",
    )
    change = {
        axis: float((standardise(moved, (axis,))[0] - standardise(x, (axis,))[0]).abs().max()) for axis in (0, -1)
    }
    return {
        "moved_by_neighbours_in_batch_norm": change[0],
        "moved_by_neighbours_in_layer_norm": change[-1],
    }


def picture(ax: "Axes", values: Tensor, name: str) -> None:
    limit = float(values.abs().max())
    ax.imshow(values.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    ax.set(title=name, xlabel="feature", xticks=range(0, 10, 3), yticks=range(6))
    ax.grid(visible=False)


def tutorial(run: Run, source: torch.Generator) -> dict[str, float]:
    """The tasks of the tutorial: by hand and by library, on two axes and on three."""
    flat = torch.randn(3, 2, generator=source, dtype=torch.float64)
    deep = torch.randn(3, 2, 4, generator=source, dtype=torch.float64) + torch.tensor([[0.0], [2.0]]).double()
    library = nn.BatchNorm1d(4).double()
    theirs = library(deep.mT).mT.detach()
    tasks: dict[str, tuple[Tensor, Tensor]] = {
        "BN on 3×2": (standardise(flat, (0,)), nn.BatchNorm1d(2).double()(flat).detach()),
        "BN on 3×2×4, over the batch": (standardise(deep, (0,)), theirs),
        "BN on 3×2×4, over batch and position": (standardise(deep, (0, 1)), theirs),
        "LN on 2×3": (standardise(flat.T, (-1,)), nn.LayerNorm(3).double()(flat.T).detach()),
        "LN on 3×2×4": (standardise(deep, (-1,)), nn.LayerNorm(4).double()(deep).detach()),
    }
    apart = {name: float((ours - library).abs().max()) for name, (ours, library) in tasks.items()}
    run.table(
        "the tutorial",
        [
            {"by hand": name, "largest difference from torch": f"{gap:.1e}", "the same": "yes" if gap < 1e-3 else "no"}
            for name, gap in apart.items()
        ],
        "With positions the formula of the notes has a mean for every position and channel, the library one for every "
        "channel. Batch norm does have trainable parameters, γ and β: here "
        f"{sum(each.numel() for each in library.parameters())} for four channels.",
    )
    return {
        "tutorial_rows_apart": max(apart["BN on 3×2"], apart["LN on 2×3"], apart["LN on 3×2×4"]),
        "tutorial_positions_apart": apart["BN on 3×2×4, over the batch"],
        "tutorial_pooled_apart": apart["BN on 3×2×4, over batch and position"],
    }
