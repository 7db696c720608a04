"""Means settle and sums become normal, unless the draws have no mean: Cauchy's never do (Diehl thm. 5.9)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Cauchy

from parnassus.atlas import exponent
from parnassus.probability import coin_sum_distance, kolmogorov_distance, normal_density, running_means, scaled_sums
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.0.14",)
expected = {
    "exponential_mean_error": at_most(0.04, "largest distance of the running mean to E[X] = 0 over the last half"),
    "cauchy_mean_spread": between(0.7, 1.4, "median |mean of n Cauchy draws|, which is 1 for every n"),
    "coin_exponent": between(-0.53, -0.47, "power of n with which coin sums near the normal law, worked out exactly"),
    "exponential_exponent": between(-0.65, -0.4, "the same for exponential draws, by sampling"),
    "cauchy_distance": at_least(0.2, "Kolmogorov distance of scaled Cauchy sums to N(0, 1) at the largest n"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 2_000, "sums": 4_000}, "gpu": {}}

COUNTS = (1, 4, 16, 64, 256)
"""Draws in a sum."""


def coin(u: Tensor) -> Tensor:
    return torch.where(u < 0.5, -1.0, 1.0).to(u)


def exponential(u: Tensor) -> Tensor:
    """Exponential with its mean 1 taken off."""
    return -(-u).log1p() - 1


def cauchy(u: Tensor) -> Tensor:
    draws: Tensor = Cauchy(0.0, 1.0).icdf(u)
    return draws


LAWS: dict[str, Callable[[Tensor], Tensor]] = {"coin ±1": coin, "exponential − 1": exponential, "Cauchy": cauchy}
"""Each turns uniform draws into draws of its law; all but the last have mean 0 and variance 1."""


@dataclass(frozen=True)
class Experiment:
    steps: int = 20_000  # draws in a running mean
    walks: int = 12  # running means drawn of each law
    sums: int = 40_000  # sums of each size for the distances

    def __call__(self, run: Run) -> dict[str, float]:
        means = {
            name: running_means(draw(torch.rand(max(self.walks, 200), self.steps, dtype=torch.float64)))
            for name, draw in LAWS.items()
        }
        run.figure(
            "running means",
            means_figure({name: walks[: self.walks] for name, walks in means.items()}),
            "Means of the first n draws. With a mean they are caught by any tube around it; dashed is ±2/√n. A Cauchy "
            "draw of the size of n comes along about once while n grows fivefold, and throws the mean off again.",
        )
        sums = {name: {n: self.sums_of(draw, n) for n in COUNTS} for name, draw in LAWS.items()}
        distances = {
            name: [float(kolmogorov_distance(values, torch.special.ndtr)) for values in by_count.values()]
            for name, by_count in sums.items()
        }
        run.figure(
            "sums of n draws, scaled",
            sums_figure(sums),
            "(X_1 + … + X_n) / √n for growing n beside the standard normal density. The coin's bars, one for each "
            "value of the sum, get finer; the Cauchy's histogram gets wider.",
        )
        run.figure(
            "how near to normal",
            distances_figure(distances, floor=0.87 / self.sums**0.5),
            "Kolmogorov distance of the scaled sums to N(0, 1). Dots are sampled; grey is what a sample of this size "
            "from the normal law itself would show, the dashed line the coin worked out exactly.",
        )
        exact = [coin_sum_distance(n) for n in COUNTS[1:]]
        late = means["exponential − 1"][0, self.steps // 2 :]
        slopes = {
            "coin": exponent(COUNTS[1:], exact),
            "exponential": exponent(COUNTS[:4], distances["exponential − 1"][:4]),
        }
        run.note(
            "what to see",
            f"The distance falls with the power {slopes['coin']:.2f} of n for the coin and {slopes['exponential']:.2f} "
            "for the skewed exponential: Berry and Esseen's 1/√n. Cauchy draws have neither mean nor variance, and "
            "both theorems stop: the mean of n draws has the law of a single one.".replace("-0", "−0"),
        )
        return {
            "exponential_mean_error": float(late.abs().max()),
            "cauchy_mean_spread": float(means["Cauchy"][:, -1].abs().median()),
            "coin_exponent": slopes["coin"],
            "exponential_exponent": slopes["exponential"],
            "cauchy_distance": distances["Cauchy"][-1],
        }

    def sums_of(self, draw: Callable[[Tensor], Tensor], count: int) -> Tensor:
        return scaled_sums(draw(torch.rand(self.sums, count, dtype=torch.float64)))


def means_figure(means: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(means), size=(11.0, 3.4))
    for (name, walks), ax, colour in zip(means.items(), axes[0], PALETTE, strict=False):
        n = torch.arange(1, walks.shape[1] + 1)
        shown = torch.unique((10 ** torch.linspace(0, float(n[-1].log10()), 500)).long())  # evenly on the log axis
        ax.plot(n[shown - 1], walks[:, shown - 1].mT, color=colour, linewidth=0.8, alpha=0.7)
        if name != "Cauchy":
            for sign in (-2, 2):
                ax.plot(n[shown - 1], sign / n[shown - 1].sqrt(), color=INK, linestyle="--", linewidth=1)
        ax.set(title=name, xlabel="n", xscale="log", ylim=(-2.2, 2.2) if name != "Cauchy" else (-12, 12))
    axes[0, 0].set_ylabel("mean of the first n draws")
    return figure


def sums_figure(sums: dict[str, dict[int, Tensor]]) -> "Figure":
    shown = (1, 4, 64)
    figure, axes = subplots(len(sums), len(shown), size=(10.0, 6.6))
    x = torch.linspace(-4.5, 4.5, 300, dtype=torch.float64)
    for (name, by_count), row, colour in zip(sums.items(), axes, PALETTE, strict=False):
        for ax, n in zip(row, shown, strict=True):
            edges = np.arange(-n - 1, n + 2, 2) / n**0.5 if name == "coin ±1" else np.arange(-4.5, 4.6, 0.18)
            counts, _ = np.histogram(by_count[n].numpy(), bins=edges)  # of a coin, a bar for each value of the sum
            width = edges[1] - edges[0]
            heights = counts / len(by_count[n]) / width
            ax.bar(edges[:-1], heights, width, align="edge", color=colour, alpha=0.5, linewidth=0)
            ax.plot(x, normal_density(x, mean=0.0, variance=1.0), color=INK, linewidth=1.2)
            ax.set(title=f"{name}, n = {n}", xlim=(-4.5, 4.5))
    return figure


def distances_figure(distances: dict[str, list[float]], *, floor: float) -> "Figure":
    figure, axes = subplots()
    ax = axes[0, 0]
    for (name, values), colour in zip(distances.items(), PALETTE, strict=False):
        ax.loglog(COUNTS, values, color=colour, marker="o", markersize=5, label=name)
    n = range(1, COUNTS[-1] + 1)
    exact = [coin_sum_distance(count) for count in n]
    ax.loglog(n, exact, color=PALETTE[0], linestyle="--", linewidth=1, label="coin, exactly")
    ax.axhspan(floor / 3, floor, color=FAINT, alpha=0.25, linewidth=0)
    ax.set(xlabel="draws in the sum, n", ylabel="distance to N(0, 1)", ylim=(floor / 1.5, 1))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
