"""Batch and layer normalisation: axes of the statistics, output norm, position of ε (Diehl sec. 1.6)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.layers import moments, standardise
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.report.style import DIVERGING
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

covers = ("C-08", "D1.6.6", "D1.6.7", "D1.6.8", "Z8.2", "Z8.3")
expected = {
    "batch_norm_dependence": at_least(
        0.3, "maximum change of an example's output when the others are shifted by ±10, batch norm"
    ),
    "layer_norm_dependence": at_most(
        0.0, "maximum change of an example's output when the others are shifted by ±10, layer norm"
    ),
    "norm_over_root_n": between(0.999, 1.0, "‖LN(x)‖/√n for vectors with variance near 1"),
    "norm_formula_error": at_most(1e-12, "maximum difference between ‖LN(x)‖ and √(n v/(v + ε))"),
    "epsilon_std_ratio": between(
        0.006, 0.0066, "ratio of output standard deviations, ε inside the root to ε outside, at √var = ε"
    ),
    "tutorial_rows_error": at_most(
        1e-6, "maximum difference from torch: batch norm without a position axis, and layer norm"
    ),
    "tutorial_positions_error": at_least(0.1, "maximum difference of the notes' batch norm from torch, with positions"),
    "tutorial_pooled_error": at_most(1e-6, "maximum difference from torch with statistics over batch and positions"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_draws": 4}, "gpu": {}}

EPSILON = 1e-5


@dataclass(frozen=True)
class Experiment:
    num_draws: Positive[int] = 40  # random vectors per scale

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        result = (
            measure_batch_dependence(run, generator)
            | self.measure_output_norms(run, generator)
            | compare_with_torch(run, generator)
        )
        run.note(
            "summary",
            "Both layers subtract a mean and divide by a standard deviation. Batch norm computes them over the "
            "examples, for each feature, so an example's output depends on the other examples; layer norm computes "
            "them over the features of each example, and all its outputs have norm √n.",
        )
        return result

    def measure_output_norms(self, run: Run, generator: torch.Generator) -> dict[str, float]:
        """‖LN(x)‖ by the standard deviation of x, and the effect of ε inside and outside the root."""
        figure, axes = subplots(1, 2, size=(10.4, 3.9))
        scales = torch.logspace(-5, 1, 25, dtype=torch.float64)
        errors = []
        ratio = torch.tensor(0.0)
        for n, colour in zip((16, 64, 256), PALETTE, strict=False):
            x = scales[:, None, None] * torch.randn(25, self.num_draws, n, generator=generator, dtype=torch.float64)
            v = moments(x, (-1,)).variance[..., 0]
            norms = standardise(x, (-1,), epsilon=EPSILON).norm(dim=-1)
            errors.append((norms - (n * v / (v + EPSILON)).sqrt()).abs().max())
            ratio = norms[20].mean() / n**0.5  # the scale 1
            axes[0, 0].semilogx(scales, norms.mean(1), color=colour, marker="o", markersize=3, label=f"n = {n}")
            axes[0, 0].axhline(n**0.5, color=FAINT, linestyle=":", linewidth=1.2)
        axes[0, 0].set(xlabel="standard deviation of x", title="‖LN(x)‖", yticks=(0, 4, 8, 16))
        axes[0, 0].legend()
        unit = standardise(torch.randn(64, generator=generator, dtype=torch.float64), (-1,), epsilon=0.0)
        inside = torch.stack([standardise(s * unit, (-1,), epsilon=EPSILON).std(correction=0) for s in scales])
        outside = scales / (scales + EPSILON)
        axes[0, 1].semilogx(scales, inside, color=PALETTE[0], label="√(var + ε)")
        axes[0, 1].semilogx(scales, outside, color=PALETTE[1], label="√var + ε, as printed")
        axes[0, 1].axvline(EPSILON**0.5, color=FAINT, linestyle=":", linewidth=1.2)
        axes[0, 1].set(xlabel="standard deviation of x", title="standard deviation of the output, ε = 10⁻⁵")
        axes[0, 1].legend()
        run.figure(
            "output norm and epsilon",
            figure,
            "Left: the output of layer norm has norm √n (dotted) unless the standard deviation of x is below √ε. "
            "Right: ε inside the root suppresses standard deviations below √ε (dotted); outside the root only those "
            "below ε, and the gradient is NaN where the standard deviation is 0.",
        )
        return {
            "norm_over_root_n": float(ratio),
            "norm_formula_error": float(torch.stack(errors).max()),
            "epsilon_std_ratio": float(inside[0] / outside[0]),
        }


def measure_batch_dependence(run: Run, generator: torch.Generator) -> dict[str, float]:
    """Both layers on one array, before and after all examples but the first are shifted."""
    features = torch.linspace(-2, 2, 10, dtype=torch.float64)
    x = torch.randn(6, 10, generator=generator, dtype=torch.float64) * (0.3 + features.abs()) + 2 * features
    shifted = x.clone()
    shifted[1:] += 10 * torch.randn(5, 1, generator=generator, dtype=torch.float64).sign()
    arrays = {
        "x": x,
        "batch norm: statistics per column": standardise(x, (0,), epsilon=EPSILON),
        "layer norm: statistics per row": standardise(x, (-1,), epsilon=EPSILON),
    }
    figure, axes = subplots(1, 3, size=(12.0, 3.2))
    for ax, (name, values) in zip(axes[0], arrays.items(), strict=True):
        plot_array(ax, values, name)
    axes[0, 0].set_ylabel("example")
    run.figure(
        "one array, both layers",
        figure,
        "Six examples of ten features (blue negative, red positive, each panel on its own scale). Features differ in "
        "mean and variance: batch norm removes this and keeps the differences between examples, layer norm keeps the "
        "pattern of the features in every row.",
    )
    change = {
        axis: float((standardise(shifted, (axis,))[0] - standardise(x, (axis,))[0]).abs().max()) for axis in (0, -1)
    }
    return {
        "batch_norm_dependence": change[0],
        "layer_norm_dependence": change[-1],
    }


def plot_array(ax: "Axes", values: Tensor, name: str) -> None:
    limit = float(values.abs().max())
    ax.imshow(values.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    ax.set(title=name, xlabel="feature", xticks=range(0, 10, 3), yticks=range(6))
    ax.grid(visible=False)


def compare_with_torch(run: Run, generator: torch.Generator) -> dict[str, float]:
    """Tasks of the tutorial: own implementation against torch, on arrays with two and three axes."""
    flat = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    deep = torch.randn(3, 2, 4, generator=generator, dtype=torch.float64) + torch.tensor([[0.0], [2.0]]).double()
    batch_norm = nn.BatchNorm1d(4).double()
    reference = batch_norm(deep.mT).mT.detach()
    tasks: dict[str, tuple[Tensor, Tensor]] = {
        "BN on 3×2": (standardise(flat, (0,)), nn.BatchNorm1d(2).double()(flat).detach()),
        "BN on 3×2×4, over the batch": (standardise(deep, (0,)), reference),
        "BN on 3×2×4, over batch and position": (standardise(deep, (0, 1)), reference),
        "LN on 2×3": (standardise(flat.T, (-1,)), nn.LayerNorm(3).double()(flat.T).detach()),
        "LN on 3×2×4": (standardise(deep, (-1,)), nn.LayerNorm(4).double()(deep).detach()),
    }
    differences = {name: float((own - expected_output).abs().max()) for name, (own, expected_output) in tasks.items()}
    run.table(
        "tutorial tasks",
        [
            {"task": name, "largest difference from torch": f"{gap:.1e}", "equal": "yes" if gap < 1e-3 else "no"}
            for name, gap in differences.items()
        ],
        "With positions, the formula of the notes has one mean per position and channel, torch one per channel. Batch "
        "norm has trainable parameters γ and β: here "
        f"{sum(each.numel() for each in batch_norm.parameters())} for four channels.",
    )
    return {
        "tutorial_rows_error": max(differences[name] for name in ("BN on 3×2", "LN on 2×3", "LN on 3×2×4")),
        "tutorial_positions_error": differences["BN on 3×2×4, over the batch"],
        "tutorial_pooled_error": differences["BN on 3×2×4, over batch and position"],
    }
