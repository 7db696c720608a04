"""Brownian motion by two samplers: the variance of the paths grows linearly in time (book fig. 15.1)."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from scipy.stats import ks_2samp
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.kernels import BrownianKernel, GaussianProcess, brownian_paths
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, at_least, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.1-1", "B15.1-2")
expected = {
    "variance_over_time": between(0.85, 1.15, "variance of the paths at the end time, divided by that time"),
    "growth_exponent": between(0.93, 1.07, "exponent p of the variance ∝ tᵖ"),
    "ks_p_value": at_least(1e-3, "p-value of a two-sample Kolmogorov-Smirnov test of the final values"),
    "time_ratio_cholesky": no_band("ratio of sampling times, Cholesky factor to sum of increments"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_paths": 400, "num_steps": 60}, "gpu": {"num_paths": 20_000}}


@dataclass(frozen=True)
class Experiment:
    num_paths: Positive[int] = 1_000  # number of sample paths
    num_steps: Positive[int] = 500  # time steps of each path
    end_time: Positive[float] = 1.0  # end of the time interval

    def __call__(self, run: Run) -> dict[str, float]:
        times = torch.linspace(0, self.end_time, self.num_steps + 1, dtype=torch.float64, device=run.device)[1:]
        process = GaussianProcess(BrownianKernel())
        began = time.perf_counter()
        by_root = process.sample(times[:, None], self.num_paths).values
        root_seconds = time.perf_counter() - began
        began = time.perf_counter()
        by_sums = brownian_paths(times, self.num_paths)
        sums_seconds = time.perf_counter() - began

        run.figure(
            "sample paths",
            plot_paths(times.cpu(), by_root.cpu()),
            f"{self.num_paths:,} paths. Dashed: one and two standard deviations √t; two paths are highlighted.",
        )
        both = {"by Cholesky factor": by_root, "by summing increments": by_sums}
        variances = {name: (times, paths.var(0)) for name, paths in both.items()}
        run.figure(
            "variance against time",
            curves(variances | {"t": (times, times)}, x_label="t", y_label="variance of the paths"),
            "Values at neighbouring times are correlated, so the estimates deviate smoothly from t.",
        )
        p_value = float(ks_2samp(by_root[:, -1].cpu().numpy(), by_sums[:, -1].cpu().numpy()).pvalue)
        last = {name: float(paths[:, -1].var()) / self.end_time for name, paths in both.items()}
        variance = (by_root.var(0) + by_sums.var(0)) / 2
        run.note(
            "results",
            f"Every y(t) is normal with mean 0, but its variance depends on t: the process is not stationary. "
            f"The Cholesky factor of the {self.num_steps} × {self.num_steps} matrix min(s, t) took "
            f"{1e3 * root_seconds:.1f} ms, the sums {1e3 * sums_seconds:.1f} ms; the two "
            f"samples do not differ significantly (p = {p_value:.2f}).",
        )
        return {
            "variance_over_time": last["by Cholesky factor"],
            "growth_exponent": exponent(times, variance),
            "ks_p_value": p_value,
            "time_ratio_cholesky": root_seconds / sums_seconds,
        }


def plot_paths(times: Tensor, paths: Tensor) -> "Figure":
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
