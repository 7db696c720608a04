"""Sample paths of random walks, Markov chains and a hidden Markov model (Diehl sec. 5.1)."""

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.probability import (
    HiddenMarkovModel,
    InhomogeneousMarkovChain,
    LinearGaussianKernel,
    MarkovChain,
    lift_to_histories,
    lumped_chain,
    random_walk,
    sample_paths,
    stationary_distribution,
    total_variation,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D5.1.1", "D5.1.2", "D5.1.3", "D5.1.4", "D5.1.5", "D5.1.6", "D5.1.7", "D5.1.8", "D5.1.9")
expected = {
    "walk_variance": between(0.95, 1.05, "variance of Y_n of the random walk, divided by n + 1"),
    "gaussian_variance": between(0.95, 1.05, "variance of X_n of the Gaussian random walk, divided by n σ²"),
    "chain_error": at_most(
        0.015, "maximum total variation between simulated and exact distributions of the weather chain"
    ),
    "inhomogeneous_chain_error": at_most(
        0.015, "maximum total variation between simulated and exact distributions of the inhomogeneous chain"
    ),
    "frequency_after_one_1": between(0.157, 0.177, "frequency of the symbol 2 after 2, 1; exactly 1/6"),
    "frequency_after_two_1s": between(0.19, 0.21, "frequency of the symbol 2 after 2, 1, 1; exactly 1/5"),
    "frequency_after_three_1s": between(0.238, 0.262, "frequency of the symbol 2 after 2, 1, 1, 1; exactly 1/4"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_paths": 500, "num_steps": 40}, "gpu": {"num_paths": 200_000}}
WEATHER = ("sun", "cloud", "rain")
NUM_PLOTTED = 5  # paths per plot


@dataclass(frozen=True)
class Experiment:
    num_paths: Positive[int] = 20_000  # simulated paths per process
    num_steps: Positive[int] = 100  # steps per path

    def __call__(self, run: Run) -> dict[str, float]:
        walks = random_walk(self.num_paths, steps=self.num_steps)
        start = torch.zeros(self.num_paths, 2)
        gaussian = sample_paths(repeat(LinearGaussianKernel(torch.eye(2)), self.num_steps), start)
        fine = sample_paths(repeat(LinearGaussianKernel(torch.full((1, 1), 1e-3)), 1_000), torch.zeros(NUM_PLOTTED, 1))[
            ..., 0
        ]
        weather, cooling = weather_chain(), cooling_chain(self.num_steps)
        days, cooled = weather.sample(self.num_paths, steps=self.num_steps), cooling.sample(self.num_paths)
        model = lumped_chain(torch.full((5,), 0.2))
        hidden, observations = model.sample(self.num_paths, steps=self.num_steps)

        run.figure(
            "random walks",
            plot_walks(walks[:NUM_PLOTTED], gaussian[:NUM_PLOTTED], fine),
            f"{NUM_PLOTTED} paths each. Left: symmetric steps ±1, with the band ±√(n + 1) of one standard deviation. "
            "Middle: Gaussian steps in the plane, with the circle of radius √(2n), the root mean square distance. "
            "Right: 1,000 small Gaussian steps, which approximate Brownian motion, with the band ±√t.",
        )
        run.figure(
            "Markov chains",
            plot_chains(days[:1], cooled[:4], hidden[:1], observations[:1]),
            "A homogeneous chain (weather), four paths of an inhomogeneous chain whose transition probabilities "
            "decrease (cooling), and a hidden five-state chain with its two observed symbols.",
        )
        run.figure(
            "marginal distributions",
            plot_marginals(weather.marginals(12), days[:, :13], cooling.marginals()[:41], cooled[:, :41], weather),
            f"Lines: exact distributions ν Aⁿ and ν A_0 … A_{{n−1}}. Dots: frequencies in {self.num_paths:,} paths. "
            "Dashed: the stationary distribution. The weather chain converges to it within days; the cooling chain "
            "freezes before it can converge.",
        )
        run.figure(
            "history process",
            plot_histories(observations[:1, :15] + 1),
            "The observed path as a Markov chain of histories: the state at time n is row n, all observations up to "
            "time n, padded with zeros.",
        )
        fractions = {ones: fraction_after(observations, ones) for ones in (1, 2, 3)}
        run.figure(
            "memory of the observations",
            plot_memory(model, observations, max_ones=8),
            "Probability of a 2 after a 2 and a number of 1s; for a Markov chain it would be constant. Line: exact, "
            "by the forward algorithm; dots: frequencies in the simulated paths.",
        )
        run.note(
            "results",
            f"The observations are not Markov: after one, two, three 1s the frequency of a 2 is {fractions[1]:.3f}, "
            f"{fractions[2]:.3f}, {fractions[3]:.3f} (exactly 1/6, 1/5, 1/4), with period three as the hidden states "
            "cycle 3 → 2 → 1. The hidden chain and the history process are Markov.",
        )
        return {
            "walk_variance": float(walks[:, -1].double().var() / (self.num_steps + 1)),
            "gaussian_variance": float(gaussian[:, -1].var() / self.num_steps),
            "chain_error": distribution_error(weather.marginals(self.num_steps), days),
            "inhomogeneous_chain_error": distribution_error(cooling.marginals(), cooled),
            "frequency_after_one_1": fractions[1],
            "frequency_after_two_1s": fractions[2],
            "frequency_after_three_1s": fractions[3],
        }


def weather_chain() -> MarkovChain:
    return MarkovChain(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]))


def cooling_chain(steps: int) -> InhomogeneousMarkovChain:
    """Five states on a ring; step n moves to either neighbour with probability 0.1 · 0.9ⁿ."""
    ring = (torch.eye(5).roll(1, 1) + torch.eye(5).roll(-1, 1)) / 2
    moving = 0.2 * 0.9 ** torch.arange(steps)[:, None, None]
    return InhomogeneousMarkovChain(torch.eye(5)[0], moving * ring + (1 - moving) * torch.eye(5))


def state_frequencies(paths: Tensor, states: int) -> Tensor:
    """The fraction of paths in each state at each time."""
    return torch.nn.functional.one_hot(paths, states).float().mean(0)


def distribution_error(marginals: Tensor, paths: Tensor) -> float:
    return float(total_variation(marginals, state_frequencies(paths, marginals.shape[1])).max())


def fraction_after(observations: Tensor, ones: int) -> float:
    """The frequency of the symbol 2 after a 2 and `ones` 1s; symbols are numbered from 0 here."""
    pattern = torch.tensor([1] + [0] * ones)
    windows = observations.unfold(1, ones + 2, 1)
    matching = (windows[..., :-1] == pattern).all(-1)
    return float(windows[..., -1][matching].double().mean())


def plot_walks(walks: Tensor, gaussian: Tensor, fine: Tensor) -> "Figure":
    figure, axes = subplots(1, 3, size=(11.5, 3.6))
    left, middle, right = axes[0]
    n = torch.arange(walks.shape[1])
    t = torch.linspace(0, 1, fine.shape[1])
    for ax, band, x in ((left, (n + 1.0).sqrt(), n), (right, t.sqrt(), t)):
        ax.fill_between(x, -band, band, color=FAINT, alpha=0.2, linewidth=0)
    for path, planar, curve, colour in zip(walks, gaussian, fine, PALETTE, strict=False):
        left.plot(n, path, color=colour, linewidth=1.2)
        middle.plot(planar[:, 0], planar[:, 1], color=colour, linewidth=1)
        middle.plot(*planar[-1], "o", color=colour, markersize=4)
        right.plot(t, curve, color=colour, linewidth=0.8)
    angle, radius = torch.linspace(0, 6.2832, 200), (2 * gaussian.shape[1] - 2) ** 0.5
    middle.plot(radius * angle.cos(), radius * angle.sin(), color=FAINT, linestyle="--", linewidth=1)
    middle.set_aspect("equal", adjustable="datalim")
    left.set(title="random walk", xlabel="n", ylabel="Y_n")
    middle.set(title="Gaussian random walk in the plane")
    right.set(title="1,000 small Gaussian steps", xlabel="t", ylabel="X_t")
    return figure


def plot_chains(days: Tensor, cooled: Tensor, hidden: Tensor, observations: Tensor) -> "Figure":
    figure, axes = subplots(2, 2, size=(11.5, 5.8))
    panels = (
        ("homogeneous chain: weather", days, PALETTE[0], WEATHER),
        ("inhomogeneous chain: cooling", cooled, PALETTE[1], tuple("12345")),
        ("hidden chain of five states", hidden, PALETTE[2], tuple("12345")),
        ("observed: f(1) = f(2) = f(3) = 1, f(4) = f(5) = 2", observations, PALETTE[3], tuple("12")),
    )
    for ax, (title, paths, colour, names) in zip(axes.flat, panels, strict=True):
        plotted = paths[:, :61]
        for index, path in enumerate(plotted):
            shift = 0.07 * (index - (len(plotted) - 1) / 2)  # separates paths in the same state
            ax.step(range(len(path)), path + shift, where="post", color=colour, linewidth=1.3)
        ax.set(title=title, xlim=(0, plotted.shape[1] - 1), ylim=(-0.3, len(names) - 0.7))
        ax.set_yticks(range(len(names)), names)
    for ax in axes[1]:
        ax.set_xlabel("n")
    return figure


def plot_marginals(
    weather_marginals: Tensor, days: Tensor, cooling_marginals: Tensor, cooled: Tensor, weather: MarkovChain
) -> "Figure":
    figure, axes = subplots(1, 2, size=(11.0, 3.6))
    for ax, marginals, paths, names, every in (
        (axes[0, 0], weather_marginals, days, WEATHER, 1),
        (axes[0, 1], cooling_marginals, cooled, tuple("12345"), 4),
    ):
        simulated = state_frequencies(paths, marginals.shape[1])
        n = torch.arange(len(marginals))
        for state, name in enumerate(names):
            colour = PALETTE[state]
            ax.plot(n, marginals[:, state], color=colour, label=name, linewidth=1.4)
            ax.plot(n[::every], simulated[::every, state], "o", color=colour, markersize=4)
        ax.set(xlabel="n", ylabel="probability", ylim=(0, 1))
        ax.legend(ncols=3, loc="upper right")
    for probability in stationary_distribution(weather.transition):
        axes[0, 0].axhline(float(probability), color=FAINT, linestyle="--", linewidth=1)
    axes[0, 0].set_title("weather, started in sun")
    axes[0, 1].set_title("cooling, started in 1")
    return figure


def plot_histories(path: Tensor) -> "Figure":
    histories = lift_to_histories(path)[0]
    figure, axes = subplots(size=(5.4, 4.6))
    ax: Axes = axes[0, 0]
    for n, row in enumerate(histories.tolist()):
        for time, symbol in enumerate(row):
            colour = FAINT if symbol == 0 else PALETTE[symbol - 1]
            ax.text(time, n, str(symbol), ha="center", va="center", color=colour, fontsize=10)
    ax.set(
        xlim=(-0.7, len(histories) - 0.3),
        ylim=(len(histories) - 0.3, -0.7),
        xlabel="coordinate of the state",
        ylabel="n",
    )
    ax.grid(visible=False)
    return figure


def plot_memory(model: HiddenMarkovModel, observations: Tensor, *, max_ones: int) -> "Figure":
    figure, axes = subplots(size=(6.4, 3.6))
    ax = axes[0, 0]
    counts = range(1, max_ones + 1)
    exact = [float(model.predict(torch.tensor([[1] + [0] * ones]))[0, 1]) for ones in counts]
    ax.plot(counts, exact, color=INK, linewidth=1.4, label="exact")
    ax.plot(counts, [fraction_after(observations, ones) for ones in counts], "o", color=PALETTE[1], label="simulated")
    for ones, fraction in ((1, "1/6"), (2, "1/5"), (3, "1/4")):
        ax.annotate(fraction, (ones, exact[ones - 1]), xytext=(0, 9), ha="center", textcoords="offset points")
    ax.set(xlabel="1s since the last 2", ylabel="probability of a 2", ylim=(0, 0.4))
    ax.legend(loc="lower right")
    return figure
