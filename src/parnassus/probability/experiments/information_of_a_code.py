"""What a code keeps, costs and loses, counted in bits on tables small enough to see whole (book sec. 6.4)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from parnassus.probability import (
    ArithmeticCode,
    CodeNumbers,
    LatentTable,
    aggregate,
    bayes_decoder,
    code_numbers,
    entropy,
    huffman_lengths,
    kl_divergence,
    prediction_numbers,
    prefix_words,
    shannon_lengths,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.1-2", "B6.1-4", "B6.4-1", "B6.4-2", "B6.4-3", "B6.4-4", "B6.4-5", "B6.4-6", "B6.4-9", "B6.4-11", "D6.0.2")
expected = {
    "largest_gap": at_most(1e-12, "largest error of the identities below, in bits, over all codes"),
    "above_the_floor": at_most(0.02, "D + R − H(X) after training with β = 1, worst start, in bits"),
    "rates_apart": at_least(0.8, "spread of the rates that these starts end with, in bits"),
    "rate_at_large_beta": at_most(0.02, "largest rate after training with β = 1.5, in bits"),
    "rate_at_small_beta": at_least(1.0, "smallest rate after training with β = 0.5, of at most 2 bits"),
    "waste_minus_kl": between(-1e-6, 0.002, "bits a letter that an arithmetic code for Q spends on P beyond H + KL"),
    "huffman_minus_kl": between(-1.0, 1.0, "the same of a Huffman code"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 60, "letters": 500}, "gpu": {}}

BIT = log(2)
NAMES = ("cat", "dog", "hen", "duck", "bee", "ant", "trout", "pike")
DATA = torch.tensor([0.2, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1, 0.05], dtype=torch.float64)
LEGS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
"""Four, two, six or no legs: what is to be predicted, and a good code of two bits."""


@dataclass(frozen=True)
class Experiment:
    steps: int = 800  # gradient steps for each weight β of the rate
    starts: int = 24  # random encoders, priors and decoders
    rate: float = 0.05  # learning rate of Adam
    letters: int = 5_000  # draws that are spelled with codes

    def __call__(self, run: Run) -> dict[str, float]:
        codes = some_codes()
        run.figure("the codes", codes_figure({name: codes[name][0] for name in list(codes)[:4]}), CODES)
        numbers = {name: code_numbers(DATA, encoder, model) for name, (encoder, model) in codes.items()}
        run.figure("where the bits go", parts_figure(numbers), PARTS)
        run.table("in bits", [self.row(name, *codes[name]) for name in codes], TABLE)

        trained = {beta: self.train(beta) for beta in (0.5, 1.0, 1.5)}
        run.figure("rate and distortion", plane_figure(numbers, trained), PLANE)

        wrong = torch.tensor([3, 4, 6, 8, 12, 10, 16, 5])
        spent = self.spell(wrong)
        run.figure("what a wrong code wastes", waste_figure(spent, wrong), WASTE)
        floor = float(entropy(DATA, base=2.0))
        rate, distortion = (torch.stack(each) for each in zip(*trained[1.0], strict=True))
        run.note(
            "what to see",
            f"The animals carry {floor:.2f} bits. Whatever a code keeps of them it must pay as rate, and what it does "
            "not keep the decoder must guess as distortion: D + R never falls below H(X). With β = 1 every start ends "
            f"on that line, at rates from {float(rate.min()):.2f} to {float(rate.max()):.2f} bits: the evidence bound "
            "does not say how much a code should keep. Only another weight β, or a decoder that is not free, does.",
        )
        seen = float(entropy(spent.frequencies, base=2.0) + spent.divergence)
        return {
            "largest_gap": largest_gap(list(numbers.values())),
            "above_the_floor": float((rate + distortion).max()) - floor,
            "rates_apart": float(rate.max() - rate.min()),
            "rate_at_large_beta": max(float(each[0]) for each in trained[1.5]),
            "rate_at_small_beta": min(float(each[0]) for each in trained[0.5]),
            "waste_minus_kl": spent.bits["arithmetic"] - seen,
            "huffman_minus_kl": spent.bits["Huffman"] - seen,
        }

    def row(self, name: str, encoder: Tensor, model: LatentTable) -> dict[str, str | float]:
        code, told = code_numbers(DATA, encoder, model), prediction_numbers(DATA, encoder, label_table())
        bits = {
            "keeps I(X,Z)": code.information,
            "rate R": code.rate,
            "distortion D": code.distortion,
            "−ELBO = D + R": code.negative_elbo,
            "tells of the legs": told.kept,
            "loses of the legs": told.lost,
        }
        return {"code": name, **{key: f"{float(value) / BIT + 0.0:.2f}" for key, value in bits.items()}}

    def train(self, beta: float) -> list[tuple[Tensor, Tensor]]:
        """Rate and distortion in bits of encoders, priors and decoders, all free, that minimise D + β R."""
        sharpness = torch.linspace(0.5, 8.0, self.starts, dtype=torch.float64)[:, None, None]
        encoder, prior, decoder = (
            (scale * torch.randn(self.starts, *shape, dtype=torch.float64)).requires_grad_()
            for scale, shape in ((sharpness, (len(DATA), 4)), (1.0, (1, 4)), (1.0, (4, len(DATA))))
        )
        optimizer = torch.optim.Adam([encoder, prior, decoder], lr=self.rate)
        for _ in range(self.steps):
            q = encoder.softmax(-1)
            rate = (DATA * kl_divergence(q, prior.softmax(-1))).sum(-1)
            distortion = -(DATA[:, None] * q * decoder.log_softmax(-1).mT).sum((-2, -1))
            optimizer.zero_grad()
            (distortion + beta * rate).sum().backward()
            optimizer.step()
        return [(r / BIT, d / BIT) for r, d in zip(rate.detach(), distortion.detach(), strict=True)]

    def spell(self, frequencies: Tensor) -> "Spelling":
        """Draws of the data with codes made for a wrong law, in bits a letter."""
        q = frequencies.double() / frequencies.sum()
        letters = torch.multinomial(DATA, self.letters, replacement=True)
        seen = torch.bincount(letters, minlength=len(DATA)).double() / self.letters
        bits = {}
        for name, lengths in (("Shannon", shannon_lengths(q)), ("Huffman", huffman_lengths(q))):
            words = prefix_words(lengths)
            bits[name] = sum(len(words[letter]) for letter in letters.tolist()) / self.letters
        whole = ArithmeticCode(tuple(frequencies.tolist())).encode(letters.tolist())
        bits["arithmetic"] = len(whole) / self.letters
        return Spelling(seen, float(kl_divergence(seen, q, base=2.0)), bits)


@dataclass(frozen=True)
class Spelling:
    """What was drawn, its divergence from the law that the codes were made for, and what each code spends."""

    frequencies: Tensor
    divergence: float
    bits: dict[str, float]


CODES = "Four encoders q(z|x): how likely each animal is to be called A, B, C or D. Dark is certain."
PARTS = (
    "The negative evidence bound −E[ELBO] of each code, in parts. The first two make up H(X), whatever the code: what "
    "is kept, and what must be guessed. A poor decoder and a prior that does not suit the codes in use come on top."
)
TABLE = "Legs are what is to be predicted: four, two, six or none."
PLANE = (
    "Rate and distortion. No code lies below the line D + R = H(X). Trained with β = 1, all starts end on it, but "
    "anywhere; β = 1.5 gives up the code, β = 0.5 fills most of its two bits."
)
WASTE = (
    "Animals spelled with codes made for a wrong law Q. Beyond the entropy an ideal code wastes KL(P ‖ Q); words of "
    "whole bits cost a little more or less, one arithmetic number for the whole message nearly nothing."
)


def label_table() -> Tensor:
    return torch.eye(4, dtype=torch.float64)[LEGS]


def some_codes() -> dict[str, tuple[Tensor, LatentTable]]:
    """Encoders, each with its own prior and Bayes decoder; the last with a prior and a decoder that do not suit it."""
    legs = label_table()
    even = torch.full((8, 4), 0.25, dtype=torch.float64)
    across = torch.eye(4, dtype=torch.float64)[torch.tensor([0, 1, 0, 1, 2, 3, 2, 3])]
    noisy = 0.7 * legs + 0.3 * even
    encoders = {"by legs": legs, "by legs, noisy": noisy, "across the legs": across, "says nothing": even}
    codes = {
        name: (encoder, LatentTable(aggregate(DATA, encoder), bayes_decoder(DATA, encoder)))
        for name, encoder in encoders.items()
    }
    prior = torch.tensor([0.1, 0.1, 0.2, 0.6], dtype=torch.float64)
    codes["by legs, poor model"] = (legs, LatentTable(prior, 0.6 * bayes_decoder(DATA, legs) + 0.05))
    return codes


def largest_gap(codes: list[CodeNumbers]) -> float:
    """The largest error of R = I + KL(q(z) ‖ p(z)), or by which I + D falls below H(X), in bits."""
    worst = 0.0
    for code in codes:
        surplus = code.rate - code.information - code.mismatch
        below = code.data_entropy - code.information - code.distortion
        worst = max(worst, abs(float(surplus)) / BIT, float(below) / BIT)
    return worst


def codes_figure(encoders: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(encoders), size=(9.6, 3.4))
    for ax, (name, encoder) in zip(axes[0], encoders.items(), strict=True):
        ax.imshow(encoder.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        ax.set_title(name)
        ax.set_xticks(range(4), list("ABCD"))
        ax.set_yticks(range(len(NAMES)), NAMES if ax is axes[0, 0] else [""] * len(NAMES))
        ax.tick_params(length=0)
        ax.grid(visible=False)
    return figure


def parts_figure(numbers: dict[str, CodeNumbers]) -> "Figure":
    figure, axes = subplots(size=(9.0, 3.8))
    ax = axes[0, 0]
    floor = float(entropy(DATA, base=2.0))
    for row, code in enumerate(numbers.values()):
        parts = {
            "kept, I(X,Z)": code.information,
            "left to guess, H(X) − I": code.data_entropy - code.information,
            "poor decoder": code.distortion - code.data_entropy + code.information,
            "poor prior, KL(q(z) ‖ p(z))": code.mismatch,
        }
        left = 0.0
        for (name, part), colour in zip(parts.items(), (PALETTE[0], FAINT, PALETTE[1], PALETTE[4]), strict=True):
            width = max(0.0, float(part) / BIT)
            ax.barh(row, width, left=left, color=colour, height=0.6, label=name if row == 0 else None)
            left += width
        ax.annotate(f"{left:.2f}", (left, row), xytext=(5, 0), textcoords="offset points", va="center")
    ax.axvline(floor, color=INK, linestyle="--", linewidth=1)
    ax.annotate("H(X)", (floor, 1), xycoords=("data", "axes fraction"), xytext=(4, -2), textcoords="offset points")
    ax.set_yticks(range(len(numbers)), list(numbers))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.margins(x=0.1)
    ax.set_xlabel("bits")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=4)
    return figure


def plane_figure(numbers: dict[str, CodeNumbers], trained: dict[float, list[tuple[Tensor, Tensor]]]) -> "Figure":
    figure, axes = subplots(size=(6.6, 4.8))
    ax = axes[0, 0]
    floor = float(entropy(DATA, base=2.0))
    ax.plot([0, floor], [floor, 0], color=INK, linewidth=1, linestyle="--", label="D + R = H(X)")
    ax.fill_between([0, floor], [floor, 0], color=FAINT, alpha=0.25, linewidth=0)
    for (beta, ends), colour in zip(trained.items(), (PALETTE[2], PALETTE[0], PALETTE[4]), strict=True):
        rate, distortion = torch.tensor(ends).T
        ax.scatter(rate, distortion, s=34, color=colour, alpha=0.7, linewidths=0, label=f"trained with β = {beta:g}")
    for name, code in numbers.items():
        place = float(code.rate) / BIT, float(code.distortion) / BIT
        ax.plot(*place, "x", color=PALETTE[1], markersize=8, markeredgewidth=2)
        below = name == "by legs"  # its neighbour's name stands above
        offset = (-8, -12) if below else (8, 6)
        ax.annotate(name, place, xytext=offset, textcoords="offset points", fontsize=8, ha="right" if below else "left")
    ax.set(xlabel="rate R, bits", ylabel="distortion D, bits", xlim=(-0.1, 3.5), ylim=(0, 3.4))
    ax.legend(loc="upper right")
    return figure


def waste_figure(spent: Spelling, frequencies: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.4))
    own = float(entropy(spent.frequencies, base=2.0))
    places = np.arange(len(NAMES))
    axes[0, 0].bar(places - 0.2, spent.frequencies.numpy(), width=0.4, color=PALETTE[0], label="P, drawn")
    q = frequencies.double() / frequencies.sum()
    axes[0, 0].bar(places + 0.2, q.numpy(), width=0.4, color=PALETTE[1], label="Q, believed")
    axes[0, 0].set_xticks(range(len(NAMES)), NAMES)
    axes[0, 0].set_ylabel("probability")
    axes[0, 0].legend()
    names = list(spent.bits)
    drawn = axes[0, 1].barh(names, list(spent.bits.values()), color=PALETTE[0], height=0.6)
    axes[0, 1].bar_label(drawn, fmt="{:.3f}", padding=3)
    for place, name, side in ((own, "H(P)", "right"), (own + spent.divergence, "H(P) + KL(P ‖ Q)", "left")):
        axes[0, 1].axvline(place, color=INK, linestyle="--", linewidth=1)
        offset = (-4 if side == "right" else 4, 0)
        axes[0, 1].annotate(
            f"{name} = {place:.3f}", (place, -0.6), xytext=offset, textcoords="offset points", ha=side, fontsize=8
        )
    axes[0, 1].set(xlabel="bits a letter", ylim=(2.5, -0.8), xlim=(0, 1.5 * max(spent.bits.values())))
    axes[0, 1].grid(visible=False, axis="y")
    return figure
