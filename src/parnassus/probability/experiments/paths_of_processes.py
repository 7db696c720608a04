"""Paths of walks, chains and a chain seen through a blur (Diehl sec. 5.1)."""

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.probability import (
    GaussianKernel,
    HiddenMarkov,
    MarkovChain,
    TimedChain,
    blurred_chain,
    lift,
    random_walk,
    stationary_law,
    total_variation,
    walk,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D5.1.1", "D5.1.2", "D5.1.3", "D5.1.4", "D5.1.5", "D5.1.6", "D5.1.7", "D5.1.8", "D5.1.9")
expected = {
    "walk_variance": between(0.95, 1.05, "variance of the walk's end over n + 1"),
    "gaussian_variance": between(0.95, 1.05, "variance of the Gaussian walk's end over n σ²"),
    "chain_error": at_most(0.015, "largest total variation between simulated and computed laws of the chain"),
    "timed_error": at_most(0.015, "the same when the rule changes with time"),
    "two_after_one_1": between(0.157, 0.177, "share of 2 seen after 2, 1; exactly 1/6"),
    "two_after_two_1s": between(0.19, 0.21, "share of 2 seen after 2, 1, 1; exactly 1/5"),
    "two_after_three_1s": between(0.238, 0.262, "share of 2 seen after 2, 1, 1, 1; exactly 1/4"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"paths": 500, "steps": 40}, "gpu": {"paths": 200_000}}
WEATHER = ("sun", "cloud", "rain")
DRAWN = 5  # paths in a picture


@dataclass(frozen=True)
class Experiment:
    paths: int = 20_000  # simulated paths of each process
    steps: int = 100  # steps of each path

    def __call__(self, run: Run) -> dict[str, float]:
        walks = random_walk(self.paths, steps=self.steps)
        start = torch.zeros(self.paths, 2)
        gaussian = walk(repeat(GaussianKernel(torch.eye(2)), self.steps), start)
        fine = walk(repeat(GaussianKernel(torch.full((1, 1), 1e-3)), 1_000), torch.zeros(DRAWN, 1))[..., 0]
        weather, cooling = weather_chain(), cooling_chain(self.steps)
        days, cooled = weather.sample(self.paths, steps=self.steps), cooling.sample(self.paths)
        model = blurred_chain(torch.full((5,), 0.2))
        hidden, seen = model.sample(self.paths, steps=self.steps)

        run.figure(
            "walks",
            draw_walks(walks[:DRAWN], gaussian[:DRAWN], fine),
            f"{DRAWN} paths each. Left: fair steps of ±1, with the band ±√(n + 1) of one standard deviation. Middle: "
            "Gaussian steps in the plane, with the circle √(2n) of the root of the mean square. Right: Gaussian steps "
            "so many and so small that the path looks like one in continuous time, with the band ±√t.",
        )
        run.figure(
            "chains",
            draw_chains(days[:1], cooled[:4], hidden[:1], seen[:1]),
            "The weather follows one rule; of the cooling chain, whose rule changes with time, four paths that move "
            "less and less; of the five-state chain only two symbols are seen.",
        )
        run.figure(
            "laws",
            draw_laws(weather.laws(12), days[:, :13], cooling.laws()[:41], cooled[:, :41], weather),
            f"Lines: ν Aⁿ, and ν A_0 … A_{{n−1}} where rules change. Dots: shares among {self.paths:,} paths. Dashed: "
            "the stationary law. The weather forgets its start within days; what cools freezes before it could forget.",
        )
        run.figure(
            "the lift",
            draw_lift(seen[:1, :15] + 1),
            "The same seen path as a chain in path space: the state at moment n is row n, all that has been seen so "
            "far. The row says everything about the past, so the past adds nothing.",
        )
        after = {ones: share_after(seen, ones) for ones in (1, 2, 3)}
        run.figure(
            "memory",
            draw_memory(model, seen, longest=8),
            "After a 2 and then some 1s, how likely is a 2? In a Markov chain only the last symbol would count and the "
            "line would be flat. Line: exact, by the forward algorithm; dots: shares in the simulated paths.",
        )
        run.note(
            "what to see",
            f"What is seen of the chain remembers: after one, two, three 1s a 2 comes with shares {after[1]:.3f}, "
            f"{after[2]:.3f}, {after[3]:.3f}, exactly 1/6, 1/5, 1/4. And so on in threes, for 3 → 2 → 1 leads back to "
            "where the 1s began. The hidden chain has no memory, nor has the lift of what is seen.",
        )
        return {
            "walk_variance": float(walks[:, -1].double().var() / (self.steps + 1)),
            "gaussian_variance": float(gaussian[:, -1].var() / self.steps),
            "chain_error": law_error(weather.laws(self.steps), days),
            "timed_error": law_error(cooling.laws(), cooled),
            "two_after_one_1": after[1],
            "two_after_two_1s": after[2],
            "two_after_three_1s": after[3],
        }


def weather_chain() -> MarkovChain:
    return MarkovChain(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]))


def cooling_chain(steps: int) -> TimedChain:
    """Five places on a ring; one moves to a neighbour with probability 0.1 · 0.9ⁿ each."""
    ring = (torch.eye(5).roll(1, 1) + torch.eye(5).roll(-1, 1)) / 2
    moving = 0.2 * 0.9 ** torch.arange(steps)[:, None, None]
    return TimedChain(torch.eye(5)[0], moving * ring + (1 - moving) * torch.eye(5))


def shares(paths: Tensor, states: int) -> Tensor:
    """The share of paths in each state at each moment."""
    return torch.nn.functional.one_hot(paths, states).float().mean(0)


def law_error(laws: Tensor, paths: Tensor) -> float:
    return float(total_variation(laws, shares(paths, laws.shape[1])).max())


def share_after(seen: Tensor, ones: int) -> float:
    """How often the symbol 2 follows a 2 and so many 1s; symbols count from 0 here."""
    pattern = torch.tensor([1] + [0] * ones)
    windows = seen.unfold(1, ones + 2, 1)
    matching = (windows[..., :-1] == pattern).all(-1)
    return float(windows[..., -1][matching].double().mean())


def draw_walks(walks: Tensor, gaussian: Tensor, fine: Tensor) -> "Figure":
    figure, axes = subplots(1, 3, size=(11.5, 3.6))
    left, middle, right = axes[0]
    n = torch.arange(walks.shape[1])
    t = torch.linspace(0, 1, fine.shape[1])
    for ax, band, x in ((left, (n + 1.0).sqrt(), n), (right, t.sqrt(), t)):
        ax.fill_between(x, -band, band, color=FAINT, alpha=0.2, linewidth=0)
    for path, flight, curve, colour in zip(walks, gaussian, fine, PALETTE, strict=False):
        left.plot(n, path, color=colour, linewidth=1.2)
        middle.plot(flight[:, 0], flight[:, 1], color=colour, linewidth=1)
        middle.plot(*flight[-1], "o", color=colour, markersize=4)
        right.plot(t, curve, color=colour, linewidth=0.8)
    turn, radius = torch.linspace(0, 6.2832, 200), (2 * gaussian.shape[1] - 2) ** 0.5
    middle.plot(radius * turn.cos(), radius * turn.sin(), color=FAINT, linestyle="--", linewidth=1)
    middle.set_aspect("equal", adjustable="datalim")
    left.set(title="random walk", xlabel="n", ylabel="Y_n")
    middle.set(title="Gaussian random walk in the plane")
    right.set(title="1,000 small Gaussian steps", xlabel="t", ylabel="X_t")
    return figure


def draw_chains(days: Tensor, cooled: Tensor, hidden: Tensor, seen: Tensor) -> "Figure":
    figure, axes = subplots(2, 2, size=(11.5, 5.8))
    panels = (
        ("a chain: the weather", days, PALETTE[0], WEATHER),
        ("a rule that changes: cooling", cooled, PALETTE[1], tuple("12345")),
        ("hidden: a chain of five states", hidden, PALETTE[2], tuple("12345")),
        ("seen of it: f(1) = f(2) = f(3) = 1, f(4) = f(5) = 2", seen, PALETTE[3], tuple("12")),
    )
    for ax, (title, paths, colour, names) in zip(axes.flat, panels, strict=True):
        shown = paths[:, :61]
        for index, path in enumerate(shown):
            shift = 0.07 * (index - (len(shown) - 1) / 2)  # so that paths at one place stay apart
            ax.step(range(len(path)), path + shift, where="post", color=colour, linewidth=1.3)
        ax.set(title=title, xlim=(0, shown.shape[1] - 1), ylim=(-0.3, len(names) - 0.7))
        ax.set_yticks(range(len(names)), names)
    for ax in axes[1]:
        ax.set_xlabel("n")
    return figure


def draw_laws(law: Tensor, days: Tensor, cooling_law: Tensor, cooled: Tensor, weather: MarkovChain) -> "Figure":
    figure, axes = subplots(1, 2, size=(11.0, 3.6))
    for ax, laws, paths, names, every in (
        (axes[0, 0], law, days, WEATHER, 1),
        (axes[0, 1], cooling_law, cooled, tuple("12345"), 4),
    ):
        drawn = shares(paths, laws.shape[1])
        n = torch.arange(len(laws))
        for state, name in enumerate(names):
            colour = PALETTE[state]
            ax.plot(n, laws[:, state], color=colour, label=name, linewidth=1.4)
            ax.plot(n[::every], drawn[::every, state], "o", color=colour, markersize=4)
        ax.set(xlabel="n", ylabel="probability", ylim=(0, 1))
        ax.legend(ncols=3, loc="upper right")
    for share in stationary_law(weather.transition):
        axes[0, 0].axhline(float(share), color=FAINT, linestyle="--", linewidth=1)
    axes[0, 0].set_title("the weather, from sun")
    axes[0, 1].set_title("cooling on a ring, from 1")
    return figure


def draw_lift(path: Tensor) -> "Figure":
    raised = lift(path)[0]
    figure, axes = subplots(size=(5.4, 4.6))
    ax: Axes = axes[0, 0]
    for n, row in enumerate(raised.tolist()):
        for moment, symbol in enumerate(row):
            colour = FAINT if symbol == 0 else PALETTE[symbol - 1]
            ax.text(moment, n, str(symbol), ha="center", va="center", color=colour, fontsize=10)
    ax.set(xlim=(-0.7, len(raised) - 0.3), ylim=(len(raised) - 0.3, -0.7), xlabel="coordinate of the state", ylabel="n")
    ax.grid(visible=False)
    return figure


def draw_memory(model: HiddenMarkov, seen: Tensor, *, longest: int) -> "Figure":
    figure, axes = subplots(size=(6.4, 3.6))
    ax = axes[0, 0]
    counts = range(1, longest + 1)
    exact = [float(model.predict(torch.tensor([[1] + [0] * ones]))[0, 1]) for ones in counts]
    ax.plot(counts, exact, color=INK, linewidth=1.4, label="exact")
    ax.plot(counts, [share_after(seen, ones) for ones in counts], "o", color=PALETTE[1], label="simulated")
    for ones, fraction in ((1, "1/6"), (2, "1/5"), (3, "1/4")):
        ax.annotate(fraction, (ones, exact[ones - 1]), xytext=(0, 9), ha="center", textcoords="offset points")
    ax.set(xlabel="1s seen since the last 2", ylabel="chance that a 2 is next", ylim=(0, 0.4))
    ax.legend(loc="lower right")
    return figure
