"""Law of large numbers and central limit theorem, and their failure for Cauchy samples (Diehl thm. 5.9)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Cauchy

from parnassus.atlas import exponent
from parnassus.probability import (
    coin_sum_normal_distance,
    kolmogorov_distance,
    normal_density,
    running_means,
    scaled_sums,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.0.14",)
expected = {
    "exponential_mean_error": at_most(0.04, "maximum distance of the running mean from E[X] = 0 over the last half"),
    "cauchy_mean_median": between(0.7, 1.4, "median |mean of n Cauchy samples|, exactly 1 for every n"),
    "coin_exponent": between(-0.53, -0.47, "exponent of n in the Kolmogorov distance of coin sums to N(0, 1), exact"),
    "exponential_exponent": between(
        -0.65, -0.4, "exponent of n in the Kolmogorov distance of sums of exponential variables to N(0, 1), by sampling"
    ),
    "cauchy_distance": at_least(0.2, "Kolmogorov distance of scaled Cauchy sums to N(0, 1) at the largest n"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"sequence_length": 2_000, "num_sums": 4_000}, "gpu": {}}

COUNTS = (1, 4, 16, 64, 256)
"""Terms per sum."""


def coin(u: Tensor) -> Tensor:
    return torch.where(u < 0.5, -1.0, 1.0).to(u)


def exponential(u: Tensor) -> Tensor:
    """Centred exponential distribution with variance 1."""
    return -(-u).log1p() - 1


def cauchy(u: Tensor) -> Tensor:
    draws: Tensor = Cauchy(0.0, 1.0).icdf(u)
    return draws


SAMPLERS: dict[str, Callable[[Tensor], Tensor]] = {"coin ±1": coin, "exponential − 1": exponential, "Cauchy": cauchy}
"""Functions from uniform samples to samples of a distribution; all but the last have mean 0 and variance 1."""


@dataclass(frozen=True)
class Experiment:
    sequence_length: Positive[int] = 20_000  # samples per running mean
    num_curves: Positive[int] = 12  # running means plotted per distribution
    num_sums: Positive[int] = 40_000  # sums per number of terms

    def __call__(self, run: Run) -> dict[str, float]:
        means = {
            name: running_means(draw(torch.rand(max(self.num_curves, 200), self.sequence_length, dtype=torch.float64)))
            for name, draw in SAMPLERS.items()
        }
        run.figure(
            "running means",
            plot_means({name: paths[: self.num_curves] for name, paths in means.items()}),
            "Means of the first n samples. If E[X] exists they converge to it; dashed: ±2/√n. Cauchy samples of "
            "magnitude n keep occurring, about once while n grows fivefold, and move the mean again.",
        )
        sums = {name: {n: self.sample_scaled_sums(draw, n) for n in COUNTS} for name, draw in SAMPLERS.items()}
        distances = {
            name: [float(kolmogorov_distance(values, torch.special.ndtr)) for values in by_count.values()]
            for name, by_count in sums.items()
        }
        run.figure(
            "scaled sums",
            plot_sums(sums),
            "Histograms of (X_1 + … + X_n) / √n and the standard normal density. For the coin there is one bar per "
            "value of the sum; for Cauchy the histogram becomes wider.",
        )
        run.figure(
            "distance to the normal distribution",
            plot_distances(distances, floor=0.87 / self.num_sums**0.5),
            "Kolmogorov distance of the scaled sums to N(0, 1). Dots: sampled; grey: sampling error of a normal "
            "sample of this size; dashed: the exact value for the coin.",
        )
        exact = [coin_sum_normal_distance(n) for n in COUNTS[1:]]
        second_half = means["exponential − 1"][0, self.sequence_length // 2 :]
        exponents = {
            "coin": exponent(COUNTS[1:], exact),
            "exponential": exponent(COUNTS[:4], distances["exponential − 1"][:4]),
        }
        run.note(
            "results",
            f"The exponent of n in the distance is {exponents['coin']:.2f} for the coin and "
            f"{exponents['exponential']:.2f} for the skewed exponential, the Berry-Esseen rate 1/√n. Cauchy variables "
            "have neither mean nor variance, and both theorems fail: the mean of n samples has the distribution of a "
            "single one.".replace("-0", "−0"),
        )
        return {
            "exponential_mean_error": float(second_half.abs().max()),
            "cauchy_mean_median": float(means["Cauchy"][:, -1].abs().median()),
            "coin_exponent": exponents["coin"],
            "exponential_exponent": exponents["exponential"],
            "cauchy_distance": distances["Cauchy"][-1],
        }

    def sample_scaled_sums(self, draw: Callable[[Tensor], Tensor], count: int) -> Tensor:
        return scaled_sums(draw(torch.rand(self.num_sums, count, dtype=torch.float64)))


def plot_means(means: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(means), size=(11.0, 3.4))
    for (name, paths), ax, colour in zip(means.items(), axes[0], PALETTE, strict=False):
        n = torch.arange(1, paths.shape[1] + 1)
        steps = torch.unique((10 ** torch.linspace(0, float(n[-1].log10()), 500)).long())  # log-spaced
        ax.plot(n[steps - 1], paths[:, steps - 1].mT, color=colour, linewidth=0.8, alpha=0.7)
        if name != "Cauchy":
            for sign in (-2, 2):
                ax.plot(n[steps - 1], sign / n[steps - 1].sqrt(), color=INK, linestyle="--", linewidth=1)
        ax.set(title=name, xlabel="n", xscale="log", ylim=(-2.2, 2.2) if name != "Cauchy" else (-12, 12))
    axes[0, 0].set_ylabel("mean of the first n samples")
    return figure


def plot_sums(sums: dict[str, dict[int, Tensor]]) -> "Figure":
    counts = (1, 4, 64)
    figure, axes = subplots(len(sums), len(counts), size=(10.0, 6.6))
    x = torch.linspace(-4.5, 4.5, 300, dtype=torch.float64)
    for (name, by_count), row, colour in zip(sums.items(), axes, PALETTE, strict=False):
        for ax, n in zip(row, counts, strict=True):
            edges = np.arange(-n - 1, n + 2, 2) / n**0.5 if name == "coin ±1" else np.arange(-4.5, 4.6, 0.18)
            frequencies, _ = np.histogram(by_count[n].numpy(), bins=edges)  # one bar per value for the coin
            width = edges[1] - edges[0]
            heights = frequencies / len(by_count[n]) / width
            ax.bar(edges[:-1], heights, width, align="edge", color=colour, alpha=0.5, linewidth=0)
            ax.plot(x, normal_density(x, mean=0.0, variance=1.0), color=INK, linewidth=1.2)
            ax.set(title=f"{name}, n = {n}", xlim=(-4.5, 4.5))
    return figure


def plot_distances(distances: dict[str, list[float]], *, floor: float) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    for (name, values), colour in zip(distances.items(), PALETTE, strict=False):
        ax.loglog(COUNTS, values, color=colour, marker="o", markersize=5, label=name)
    n = range(1, COUNTS[-1] + 1)
    exact = [coin_sum_normal_distance(count) for count in n]
    ax.loglog(n, exact, color=PALETTE[0], linestyle="--", linewidth=1, label="coin, exact")
    ax.axhspan(floor / 3, floor, color=FAINT, alpha=0.25, linewidth=0)
    ax.set(xlabel="terms of the sum, n", ylabel="distance to N(0, 1)", ylim=(floor / 1.5, 1))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
