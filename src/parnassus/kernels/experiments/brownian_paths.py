"""A thousand paths of Brownian motion: their variance grows as time (book fig. 15.1)."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from scipy.stats import ks_2samp
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.kernels import Brownian, GaussianProcess, brownian_paths
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.1-1", "B15.1-2")
expected = {
    "variance_over_time": between(0.85, 1.15, "variance of the paths at the last moment, over that moment"),
    "growth_exponent": between(0.93, 1.07, "p where the variance grows as tᵖ"),
    "same_law": at_least(1e-3, "p-value of the two samplers' last values being from one law"),
    "root_over_sums": reported("time of drawing by Cholesky root over time of summing increments"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"paths": 400, "moments": 60}, "gpu": {"paths": 20_000}}


@dataclass(frozen=True)
class Experiment:
    paths: int = 1_000  # realisations
    moments: int = 500  # moments in time at which each is known
    end: float = 1.0  # last moment

    def __call__(self, run: Run) -> dict[str, float]:
        times = torch.linspace(0, self.end, self.moments + 1, dtype=torch.float64, device=run.device)[1:]
        process = GaussianProcess(Brownian())
        began = time.perf_counter()
        by_root = process.sample(times[:, None], self.paths).values
        root_seconds = time.perf_counter() - began
        began = time.perf_counter()
        by_sums = brownian_paths(times, self.paths)
        sums_seconds = time.perf_counter() - began

        run.figure(
            "the fan",
            fan(times.cpu(), by_root.cpu()),
            f"{self.paths:,} paths. Dashed: one and two standard deviations √t; two paths are drawn in colour.",
        )
        both = {"by Cholesky root": by_root, "by summing increments": by_sums}
        variances = {name: (times, paths.var(0)) for name, paths in both.items()}
        run.figure(
            "variance against time",
            curves(variances | {"t": (times, times)}, x_label="t", y_label="variance over the paths"),
            "Neighbouring moments share their past, so each measured line wanders slowly around t.",
        )
        p_value = float(ks_2samp(by_root[:, -1].cpu().numpy(), by_sums[:, -1].cpu().numpy()).pvalue)
        last = {name: float(paths[:, -1].var()) / self.end for name, paths in both.items()}
        variance = (by_root.var(0) + by_sums.var(0)) / 2
        run.note(
            "what to see",
            f"Every y(t) is normal with mean 0, but no two moments have the same law: the process is not stationary. "
            f"The root of the {self.moments} × {self.moments} matrix min(s, t) took {1e3 * root_seconds:.1f} ms, the "
            f"sums {1e3 * sums_seconds:.1f} ms, and the two samples cannot be told apart (p = {p_value:.2f}).",
        )
        return {
            "variance_over_time": last["by Cholesky root"],
            "growth_exponent": exponent(times, variance),
            "same_law": p_value,
            "root_over_sums": root_seconds / sums_seconds,
        }


def fan(times: Tensor, paths: Tensor) -> "Figure":
    figure, axes = subplots(size=(7.6, 4.4))
    ax = axes[0, 0]
    t = torch.cat([torch.zeros(1), times])
    y = torch.cat([torch.zeros(len(paths), 1), paths], 1)
    ax.plot(t, y.mT, color=PALETTE[0], alpha=min(0.6, 60 / len(paths)), linewidth=0.5, rasterized=True)
    for path, colour in zip(y, PALETTE[1:3], strict=False):
        ax.plot(t, path, color=colour, linewidth=1.2)
    for deviations in (-2, -1, 1, 2):
        ax.plot(t, deviations * t.sqrt(), color=INK, linestyle="--", linewidth=1)
    ax.set(xlabel="t", ylabel="y(t)", xlim=(0, float(times[-1])))
    return figure
