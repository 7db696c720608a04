"""Four ways to converge, and for each arrow that cannot be turned a sequence that shows it (Diehl thm. 5.7)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.probability import (
    deviation_probability,
    empirical_law,
    later_deviation_probability,
    levy_distance,
    lp_error,
    mirrored,
    shrinking,
    spike,
    typewriter,
    typewriter_block,
)
from parnassus.report import PALETTE, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.0.12", "D5.0.13")
expected = {
    "typewriter_in_probability": at_most(0.03, "P[|X_n| > ½] of the typewriter at the step looked at"),
    "typewriter_almost_surely": between(0.999, 1.001, "P[a later X_m is struck] of the typewriter from there on"),
    "spike_almost_surely": at_most(0.003, "P[a later spike n is not 0]"),
    "spike_in_mean": between(0.98, 1.02, "E|X_n| of the spikes n, which is 1 for every n"),
    "mirror_in_distribution": at_most(1e-5, "Lévy distance of −X to X"),
    "mirror_in_probability": between(0.75, 0.85, "P[|X_n − X| > ½] of the mirror at odd n, P[|X| > ¼] = 0.80"),
    "verdicts_wrong": at_most(0.0, "verdicts of the table that theory contradicts"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"outcomes": 2_000, "steps": 1_200}, "gpu": {}}

TOLERANCE = 0.5
SMALL = 0.1  # a number that tends to 0 should be below this at the step looked at


class Sequence(NamedTuple):
    """A sequence on a sampled space, its limit, and the modes in which it converges by theory."""

    paths: Tensor
    limit: Tensor
    modes: tuple[str, ...]


MODES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "almost surely": lambda paths, limit: later_deviation_probability(paths, limit, tolerance=TOLERANCE),
    "in L²": lambda paths, limit: lp_error(paths, limit, order=2.0),
    "in L¹": lambda paths, limit: lp_error(paths, limit, order=1.0),
    "in probability": lambda paths, limit: deviation_probability(paths, limit, tolerance=TOLERANCE),
}
"""For each mode the numbers that tend to 0; in distribution has a distance of its own."""


@dataclass(frozen=True)
class Experiment:
    outcomes: int = 4_000  # outcomes ω, an even number
    steps: int = 2_000  # length of each sequence
    struck: int = 60  # steps of the typewriter in the raster

    def __call__(self, run: Run) -> dict[str, float]:
        if self.outcomes % 2 or self.outcomes < 2:
            raise ValueError(f"outcomes must be an even number, so that X can be symmetric; got {self.outcomes}")
        n = torch.arange(1, self.steps + 1)
        omega = (torch.arange(self.outcomes) + torch.rand(self.outcomes, dtype=torch.float64)) / self.outcomes
        half = torch.randn(self.outcomes // 2, dtype=torch.float64)
        x = torch.cat([half, -half])  # symmetric as it stands, so that −X has exactly the law of X
        sequences = examples(omega, x, n)
        run.figure(
            "the typewriter",
            raster(self.struck),
            "Where X_n(ω) = 1, for every ω from bottom to top. Keys get narrower, so that a strike at a given n "
            "becomes unlikely; but the carriage always returns, and every row (one is marked) is struck in each block.",
        )
        measured = {name: {mode: f(s.paths, s.limit) for mode, f in MODES.items()} for name, s in sequences.items()}
        places = torch.unique(2 * (10 ** torch.linspace(-0.3, log10(self.steps / 4), 9)).long() + 1)  # odd, log-evenly
        laws = {name: distances(sequence, places) for name, sequence in sequences.items()}
        run.figure(
            "what each mode measures",
            modes_figure(measured, laws, places),
            f"Each number tends to 0 exactly if the sequence converges in that mode (ε = {TOLERANCE:g}). Almost surely "
            "looks at all later steps at once, as far as they were simulated, so only the first half is drawn. In "
            "distribution is the Lévy distance of the laws, which for the mirror is 0 throughout.",
        )
        at = int(places[-1]) - 1  # of an odd n, where the mirror is turned
        rows, wrong = [], 0
        for name, sequence in sequences.items():
            numbers = {mode: float(values[at]) for mode, values in measured[name].items()}
            numbers["in distribution"] = float(laws[name][-1])
            verdicts = {mode: value < SMALL for mode, value in numbers.items()}
            wrong += sum(verdict != (mode in sequence.modes) for mode, verdict in verdicts.items())
            rows.append(
                {"sequence": name}
                | {mode: f"{'yes' if verdicts[mode] else 'no'} ({number:.2g})" for mode, number in numbers.items()}
            )
        run.table(
            "which sequence converges how",
            rows,
            f"The number of each mode at n = {at + 1}; below {SMALL:g} counts as yes. "
            f"Verdicts that theory contradicts: {wrong}.",
        )
        run.note(
            "what to see",
            "Wherever a row says yes almost surely or in L¹ it says yes in probability, and then in distribution. Yes "
            "in L² brings it in L¹. No arrow can be turned: the typewriter converges in L² but not almost surely, a "
            "spike of height n almost surely but not in L¹, one of height √n in L¹ but not in L², and the mirror in "
            "distribution only.",
        )
        typed, tall, flipped = measured["typewriter"], measured["spike n"], measured["mirror"]
        return {
            "typewriter_in_probability": float(typed["in probability"][at]),
            "typewriter_almost_surely": float(typed["almost surely"][at]),
            "spike_almost_surely": float(tall["almost surely"][at]),
            "spike_in_mean": float(tall["in L¹"][:10].mean()),
            "mirror_in_distribution": float(laws["mirror"][-1]),
            "mirror_in_probability": float(flipped["in probability"][at]),
            "verdicts_wrong": float(wrong),
        }


def examples(omega: Tensor, x: Tensor, n: Tensor) -> dict[str, Sequence]:
    zero = torch.zeros_like(omega)
    below = ("in probability", "in distribution")
    return {
        "X/n": Sequence(shrinking(x, n), zero, ("almost surely", "in L²", "in L¹", *below)),
        "typewriter": Sequence(typewriter(omega, n), zero, ("in L²", "in L¹", *below)),
        "spike √n": Sequence(spike(omega, n, power=0.5), zero, ("almost surely", "in L¹", *below)),
        "spike n": Sequence(spike(omega, n), zero, ("almost surely", *below)),
        "mirror": Sequence(mirrored(x, n), x, ("in distribution",)),
    }


def raster(steps: int) -> "Figure":
    figure, axes = subplots(size=(9.0, 3.6))
    ax = axes[0, 0]
    n = torch.arange(1, steps + 1)
    m, j = typewriter_block(n)
    marked = 0.4
    for step, block, place in zip(n.tolist(), m.tolist(), j.tolist(), strict=True):
        struck = (place - 1) / block <= marked < place / block
        colour = PALETTE[1] if struck else PALETTE[0]
        ax.bar(step, 1 / block, bottom=(place - 1) / block, width=1.0, color=colour, linewidth=0)
    for step in n[j == 1].tolist():
        ax.axvline(step - 0.5, color=PALETTE[7], linewidth=0.6, alpha=0.6)
    ax.axhline(marked, color=PALETTE[1], linewidth=1, linestyle="--")
    ax.set(xlabel="n", ylabel="ω", xlim=(0.5, steps + 0.5), ylim=(0, 1))
    ax.grid(visible=False)
    return figure


def distances(sequence: Sequence, places: Tensor) -> Tensor:
    """Lévy distances of the laws at some n to the law of the limit."""
    limit = empirical_law(sequence.limit)
    return torch.stack([levy_distance(empirical_law(x), limit, halvings=20) for x in sequence.paths[:, places - 1].mT])


def modes_figure(measured: dict[str, dict[str, Tensor]], laws: dict[str, Tensor], places: Tensor) -> "Figure":
    figure, axes = subplots(2, 3, size=(10.0, 6.0))
    panels = dict(zip((*MODES, "in distribution"), axes.flat, strict=False))
    n = torch.arange(1, int(places[-1]) + 1, 2)  # odd, as the mirror's even members are X itself
    for (name, numbers), colour in zip(measured.items(), PALETTE, strict=False):
        style = "--" if name == "spike n" else "-"  # both spikes are struck at the same ω
        for mode, values in numbers.items():
            seen = torch.where(values[n - 1] > 0, values[n - 1], torch.nan)  # a log axis has no place for 0
            panels[mode].plot(n, seen, style, color=colour, linewidth=1.6)
        panels["in distribution"].plot(places, laws[name], style, color=colour, linewidth=1.6, label=name)
    for mode, ax in panels.items():
        ax.set(title=mode, xscale="log", yscale="log", xlim=(0.9, 1.1 * float(n[-1])), ylim=(1.5e-3, 8))
    axes[0, -1].set_xlabel("n")
    for ax in axes[1, :2]:
        ax.set_xlabel("n")
    axes[1, 2].set_axis_off()
    axes[1, 2].legend(*axes[1, 1].get_legend_handles_labels(), loc="center")
    return figure
