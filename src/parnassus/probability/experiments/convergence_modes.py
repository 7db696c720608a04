"""Modes of convergence and counterexamples to the reverse implications (Diehl thm. 5.7)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.probability import (
    alternating_sign_sequence,
    deviation_probability,
    empirical_distribution,
    levy_distance,
    lp_error,
    spike_sequence,
    tail_deviation_probability,
    typewriter_block,
    typewriter_sequence,
    vanishing_sequence,
)
from parnassus.report import PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D5.0.12", "D5.0.13")
expected = {
    "typewriter_in_probability": at_most(0.03, "P[|X_n| > ½] of the typewriter sequence at the last step"),
    "typewriter_almost_surely": between(0.999, 1.001, "P[X_m ≠ 0 for a later m] of the typewriter sequence"),
    "spike_almost_surely": at_most(0.003, "P[X_m ≠ 0 for a later m] of the spike of height n"),
    "spike_in_mean": between(0.98, 1.02, "E|X_n| of the spike of height n, exactly 1 for every n"),
    "alternating_in_distribution": at_most(1e-5, "Lévy distance between −X and X"),
    "alternating_in_probability": between(
        0.75, 0.85, "P[|X_n − X| > ½] of (−1)ⁿ X at odd n, exactly P[|X| > ¼] = 0.80"
    ),
    "contradictions_with_theory": at_most(0.0, "number of entries of the table that contradict the theory"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_outcomes": 2_000, "sequence_length": 1_200}, "gpu": {}}

TOLERANCE = 0.5
SMALL = 0.1  # threshold for convergence to 0 at the last step


class RandomSequence(NamedTuple):
    """Sample paths of a sequence, its limit, and the modes in which it converges."""

    paths: Tensor
    limit: Tensor
    modes: tuple[str, ...]


MODES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "almost surely": lambda paths, limit: tail_deviation_probability(paths, limit, tolerance=TOLERANCE),
    "in L²": lambda paths, limit: lp_error(paths, limit, order=2.0),
    "in L¹": lambda paths, limit: lp_error(paths, limit, order=1.0),
    "in probability": lambda paths, limit: deviation_probability(paths, limit, tolerance=TOLERANCE),
}
"""The quantity that converges to 0 in each mode; convergence in distribution uses the Lévy distance."""


@dataclass(frozen=True)
class Experiment:
    num_outcomes: Positive[int] = 4_000  # outcomes ω (even)
    sequence_length: Positive[int] = 2_000  # length of each sequence
    num_plotted_steps: Positive[int] = 60  # steps of the typewriter sequence plotted

    def __call__(self, run: Run) -> dict[str, float]:
        if self.num_outcomes % 2 or self.num_outcomes < 2:
            raise ValueError(f"num_outcomes must be even and positive, so that X is symmetric; got {self.num_outcomes}")
        n = torch.arange(1, self.sequence_length + 1)
        omega = (
            torch.arange(self.num_outcomes) + torch.rand(self.num_outcomes, dtype=torch.float64)
        ) / self.num_outcomes
        half = torch.randn(self.num_outcomes // 2, dtype=torch.float64)
        x = torch.cat([half, -half])  # symmetric, so that −X has exactly the distribution of X
        sequences = example_sequences(omega, x, n)
        run.figure(
            "typewriter sequence",
            plot_typewriter(self.num_plotted_steps),
            "The set X_n(ω) = 1 for every n. The intervals become narrower, so X_n → 0 in probability, but every ω "
            "(one is marked) lies in one interval of each block, so X_n(ω) does not converge.",
        )
        measured = {name: {mode: f(s.paths, s.limit) for mode, f in MODES.items()} for name, s in sequences.items()}
        steps = torch.unique(
            2 * (10 ** torch.linspace(-0.3, log10(self.sequence_length / 4), 9)).long() + 1
        )  # odd, log-spaced
        levy = {name: levy_distances(sequence, steps) for name, sequence in sequences.items()}
        run.figure(
            "convergence in each mode",
            plot_modes(measured, levy, steps),
            f"Each quantity converges to 0 if and only if the sequence converges in that mode (ε = {TOLERANCE:g}). For "
            "almost sure convergence it depends on all later steps, so only the first half is plotted. For "
            "convergence in distribution it is the Lévy distance, which is 0 for (−1)ⁿ X.",
        )
        last = int(steps[-1]) - 1  # of an odd n, where (−1)ⁿ X = −X
        rows, errors = [], 0
        for name, sequence in sequences.items():
            numbers = {mode: float(values[last]) for mode, values in measured[name].items()}
            numbers["in distribution"] = float(levy[name][-1])
            decisions = {mode: value < SMALL for mode, value in numbers.items()}
            errors += sum(converges != (mode in sequence.modes) for mode, converges in decisions.items())
            rows.append(
                {"sequence": name}
                | {mode: f"{'yes' if decisions[mode] else 'no'} ({number:.2g})" for mode, number in numbers.items()}
            )
        run.table(
            "modes of convergence",
            rows,
            f"The quantity of each mode at n = {last + 1}; values below {SMALL:g} are treated as 0. "
            f"Contradictions with the theory: {errors}.",
        )
        run.note(
            "results",
            "Almost sure convergence and convergence in L¹ imply convergence in probability, which implies "
            "convergence in distribution; L² implies L¹. No implication can be reversed: the typewriter sequence "
            "converges in L² but not almost surely, a spike of height n almost surely but not in L¹, one of height "
            "√n in L¹ but not in L², and (−1)ⁿ X in distribution only.",
        )
        typewriter, spike, alternating = (measured[name] for name in ("typewriter", "spike n", "(−1)ⁿ X"))
        return {
            "typewriter_in_probability": float(typewriter["in probability"][last]),
            "typewriter_almost_surely": float(typewriter["almost surely"][last]),
            "spike_almost_surely": float(spike["almost surely"][last]),
            "spike_in_mean": float(spike["in L¹"][:10].mean()),
            "alternating_in_distribution": float(levy["(−1)ⁿ X"][-1]),
            "alternating_in_probability": float(alternating["in probability"][last]),
            "contradictions_with_theory": float(errors),
        }


def example_sequences(omega: Tensor, x: Tensor, n: Tensor) -> dict[str, RandomSequence]:
    zero = torch.zeros_like(omega)
    weaker = ("in probability", "in distribution")
    return {
        "X/n": RandomSequence(vanishing_sequence(x, n), zero, ("almost surely", "in L²", "in L¹", *weaker)),
        "typewriter": RandomSequence(typewriter_sequence(omega, n), zero, ("in L²", "in L¹", *weaker)),
        "spike √n": RandomSequence(spike_sequence(omega, n, power=0.5), zero, ("almost surely", "in L¹", *weaker)),
        "spike n": RandomSequence(spike_sequence(omega, n), zero, ("almost surely", *weaker)),
        "(−1)ⁿ X": RandomSequence(alternating_sign_sequence(x, n), x, ("in distribution",)),
    }


def plot_typewriter(steps: int) -> "Figure":
    figure, axes = subplots(size=(9.0, 3.6))
    ax = axes[0, 0]
    n = torch.arange(1, steps + 1)
    m, j = typewriter_block(n)
    omega = 0.4
    for step, block, position in zip(n.tolist(), m.tolist(), j.tolist(), strict=True):
        contains = (position - 1) / block <= omega < position / block
        colour = PALETTE[1] if contains else PALETTE[0]
        ax.bar(step, 1 / block, bottom=(position - 1) / block, width=1.0, color=colour, linewidth=0)
    for step in n[j == 1].tolist():
        ax.axvline(step - 0.5, color=PALETTE[7], linewidth=0.6, alpha=0.6)
    ax.axhline(omega, color=PALETTE[1], linewidth=1, linestyle="--")
    ax.set(xlabel="n", ylabel="ω", xlim=(0.5, steps + 0.5), ylim=(0, 1))
    ax.grid(visible=False)
    return figure


def levy_distances(sequence: RandomSequence, steps: Tensor) -> Tensor:
    """Lévy distances between the distributions at the given steps and that of the limit."""
    limit = empirical_distribution(sequence.limit)
    return torch.stack(
        [levy_distance(empirical_distribution(x), limit, bisections=20) for x in sequence.paths[:, steps - 1].mT]
    )


def plot_modes(measured: dict[str, dict[str, Tensor]], levy: dict[str, Tensor], steps: Tensor) -> "Figure":
    figure, axes = subplots(2, 3, size=(10.0, 6.0))
    panels = dict(zip((*MODES, "in distribution"), axes.flat, strict=False))
    n = torch.arange(1, int(steps[-1]) + 1, 2)  # odd, as the even members of (−1)ⁿ X are X itself
    for (name, numbers), colour in zip(measured.items(), PALETTE, strict=False):
        style = "--" if name == "spike n" else "-"  # both spikes are nonzero at the same ω
        for mode, values in numbers.items():
            positive = torch.where(values[n - 1] > 0, values[n - 1], torch.nan)  # 0 is not shown on a log axis
            panels[mode].plot(n, positive, style, color=colour, linewidth=1.6)
        panels["in distribution"].plot(steps, levy[name], style, color=colour, linewidth=1.6, label=name)
    for mode, ax in panels.items():
        ax.set(title=mode, xscale="log", yscale="log", xlim=(0.9, 1.1 * float(n[-1])), ylim=(1.5e-3, 8))
    axes[0, -1].set_xlabel("n")
    for ax in axes[1, :2]:
        ax.set_xlabel("n")
    axes[1, 2].set_axis_off()
    axes[1, 2].legend(*axes[1, 1].get_legend_handles_labels(), loc="center")
    return figure
