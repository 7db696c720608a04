"""Rate, distortion and information of discrete codes, and code lengths in bits (book sec. 6.4)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from parnassus.information import (
    ArithmeticCode,
    RateDistortionTerms,
    aggregated_posterior,
    bayes_decoder,
    huffman_lengths,
    label_information,
    prefix_codewords,
    rate_distortion_terms,
    shannon_lengths,
)
from parnassus.probability import DiscreteLatentModel, entropy, kl_divergence
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.1-2", "B6.1-4", "B6.4-1", "B6.4-2", "B6.4-3", "B6.4-4", "B6.4-5", "B6.4-6", "B6.4-9", "B6.4-11", "D6.0.2")
expected = {
    "largest_gap": at_most(1e-12, "largest error of R = I + KL and I + D ≥ H(X) over all codes, in bits"),
    "excess_over_entropy": at_most(0.02, "D + R − H(X) after training with β = 1, worst initialisation, in bits"),
    "rate_range": at_least(0.8, "range of the final rates over all initialisations with β = 1, in bits"),
    "rate_at_large_beta": at_most(0.02, "largest rate after training with β = 1.5, in bits"),
    "rate_at_small_beta": at_least(1.0, "smallest rate after training with β = 0.5, of at most 2 bits"),
    "arithmetic_minus_kl": between(-1e-6, 0.002, "bits per symbol of an arithmetic code for Q under P, minus H + KL"),
    "huffman_minus_kl": between(-1.0, 1.0, "bits per symbol of a Huffman code for Q under P, minus H + KL"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 60, "num_symbols": 500}, "gpu": {}}

BIT = log(2)
NAMES = ("cat", "dog", "hen", "duck", "bee", "ant", "trout", "pike")
DATA = torch.tensor([0.2, 0.2, 0.15, 0.1, 0.1, 0.1, 0.1, 0.05], dtype=torch.float64)
LEGS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
"""Class by number of legs (four, two, six, none): the label to predict, and a good two-bit code."""


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 800  # gradient steps per rate weight β
    num_starts: Positive[int] = 24  # random initialisations of encoder, prior and decoder
    learning_rate: Positive[float] = 0.05  # learning rate of Adam
    num_symbols: Positive[int] = 5_000  # samples to encode

    def __call__(self, run: Run) -> dict[str, float]:
        codes = example_codes()
        run.figure("encoders", plot_codes({name: codes[name][0] for name in list(codes)[:4]}), ENCODERS)
        numbers = {name: rate_distortion_terms(DATA, encoder, model) for name, (encoder, model) in codes.items()}
        run.figure("decomposition of the negative ELBO", plot_parts(numbers), PARTS)
        run.table("terms of the ELBO in bits", [self.row(name, *codes[name]) for name in codes], TABLE)

        trained = {beta: self.train(beta) for beta in (0.5, 1.0, 1.5)}
        run.figure("rate and distortion", plot_plane(numbers, trained), PLANE)

        frequencies_q = torch.tensor([3, 4, 6, 8, 12, 10, 16, 5])
        code_lengths = self.measure_code_lengths(frequencies_q)
        run.figure(
            "redundancy of codes for a wrong distribution", plot_redundancy(code_lengths, frequencies_q), REDUNDANCY
        )
        entropy_bits = float(entropy(DATA, base=2.0))
        rate, distortion = (torch.stack(each) for each in zip(*trained[1.0], strict=True))
        run.note(
            "results",
            f"The data have an entropy of {entropy_bits:.2f} bits, and D + R ≥ H(X) for every code. With β = 1 every "
            f"initialisation reaches this line, at rates from {float(rate.min()):.2f} to {float(rate.max()):.2f} bits: "
            "the ELBO does not determine the rate. Another weight β, or a restricted decoder, does.",
        )
        ideal = float(entropy(code_lengths.frequencies, base=2.0) + code_lengths.divergence)
        return {
            "largest_gap": largest_gap(list(numbers.values())),
            "excess_over_entropy": float((rate + distortion).max()) - entropy_bits,
            "rate_range": float(rate.max() - rate.min()),
            "rate_at_large_beta": max(float(each[0]) for each in trained[1.5]),
            "rate_at_small_beta": min(float(each[0]) for each in trained[0.5]),
            "arithmetic_minus_kl": code_lengths.bits["arithmetic"] - ideal,
            "huffman_minus_kl": code_lengths.bits["Huffman"] - ideal,
        }

    def row(self, name: str, encoder: Tensor, model: DiscreteLatentModel) -> dict[str, str | float]:
        code, label = rate_distortion_terms(DATA, encoder, model), label_information(DATA, encoder, label_table())
        bits = {
            "information I(X,Z)": code.information,
            "rate R": code.rate,
            "distortion D": code.distortion,
            "−ELBO = D + R": code.negative_elbo,
            "label information I(Z,Y)": label.code_information,
            "lost label information": label.lost,
        }
        return {"code": name, **{key: f"{float(value) / BIT + 0.0:.2f}" for key, value in bits.items()}}

    def train(self, beta: float) -> list[tuple[Tensor, Tensor]]:
        """Rate and distortion in bits of unrestricted encoders, priors and decoders that minimise D + β R."""
        sharpness = torch.linspace(0.5, 8.0, self.num_starts, dtype=torch.float64)[:, None, None]
        encoder, prior, decoder = (
            (scale * torch.randn(self.num_starts, *shape, dtype=torch.float64)).requires_grad_()
            for scale, shape in ((sharpness, (len(DATA), 4)), (1.0, (1, 4)), (1.0, (4, len(DATA))))
        )
        optimizer = torch.optim.Adam([encoder, prior, decoder], lr=self.learning_rate)
        for _ in range(self.steps):
            q = encoder.softmax(-1)
            rate = (DATA * kl_divergence(q, prior.softmax(-1))).sum(-1)
            distortion = -(DATA[:, None] * q * decoder.log_softmax(-1).mT).sum((-2, -1))
            optimizer.zero_grad()
            (distortion + beta * rate).sum().backward()
            optimizer.step()
        return [(r / BIT, d / BIT) for r, d in zip(rate.detach(), distortion.detach(), strict=True)]

    def measure_code_lengths(self, frequencies: Tensor) -> "CodeLengths":
        """Bits per symbol of samples of the data, coded for a wrong distribution."""
        q = frequencies.double() / frequencies.sum()
        symbols = torch.multinomial(DATA, self.num_symbols, replacement=True)
        empirical = torch.bincount(symbols, minlength=len(DATA)).double() / self.num_symbols
        bits = {}
        for name, lengths in (("Shannon", shannon_lengths(q)), ("Huffman", huffman_lengths(q))):
            codewords = prefix_codewords(lengths)
            bits[name] = sum(len(codewords[symbol]) for symbol in symbols.tolist()) / self.num_symbols
        message = ArithmeticCode(tuple(frequencies.tolist())).encode(symbols.tolist())
        bits["arithmetic"] = len(message) / self.num_symbols
        return CodeLengths(empirical, float(kl_divergence(empirical, q, base=2.0)), bits)


@dataclass(frozen=True)
class CodeLengths:
    """Empirical distribution, its divergence from the distribution of the codes, and bits per symbol of each code."""

    frequencies: Tensor
    divergence: float
    bits: dict[str, float]


ENCODERS = "Four encoders q(z|x) of the animals x with codes z = A, B, C, D. Darker cells are more probable."
PARTS = (
    "Decomposition of −E[ELBO] for each code. The first two parts, the information kept and the conditional entropy, "
    "add up to H(X) for every code. A suboptimal decoder and a prior unlike the aggregated posterior add to it."
)
TABLE = "The label Y is the number of legs: four, two, six or none."
PLANE = (
    "Rate-distortion plane. No code lies below the line D + R = H(X). Trained with β = 1, all initialisations end "
    "on the line, at different rates; with β = 1.5 the rate collapses to 0, with β = 0.5 it is close to the maximum of "
    "two bits."
)
REDUNDANCY = (
    "Samples of P coded for a wrong distribution Q. The redundancy of an ideal code is KL(P ‖ Q); prefix codes deviate "
    "by rounding to integer lengths, arithmetic coding hardly at all."
)


def label_table() -> Tensor:
    return torch.eye(4, dtype=torch.float64)[LEGS]


def example_codes() -> dict[str, tuple[Tensor, DiscreteLatentModel]]:
    """Encoders with aggregated posterior and Bayes decoder; the last with a suboptimal prior and decoder."""
    legs = label_table()
    uniform = torch.full((8, 4), 0.25, dtype=torch.float64)
    across_legs = torch.eye(4, dtype=torch.float64)[torch.tensor([0, 1, 0, 1, 2, 3, 2, 3])]
    noisy = 0.7 * legs + 0.3 * uniform
    encoders = {"by legs": legs, "by legs, noisy": noisy, "across legs": across_legs, "constant": uniform}
    codes = {
        name: (encoder, DiscreteLatentModel(aggregated_posterior(DATA, encoder), bayes_decoder(DATA, encoder)))
        for name, encoder in encoders.items()
    }
    prior = torch.tensor([0.1, 0.1, 0.2, 0.6], dtype=torch.float64)
    codes["by legs, poor model"] = (legs, DiscreteLatentModel(prior, 0.6 * bayes_decoder(DATA, legs) + 0.05))
    return codes


def largest_gap(codes: list[RateDistortionTerms]) -> float:
    """The largest error of R = I + KL(q(z) ‖ p(z)), or violation of I + D ≥ H(X), in bits."""
    worst = 0.0
    for code in codes:
        error = code.rate - code.information - code.marginal_kl
        violation = code.data_entropy - code.information - code.distortion
        worst = max(worst, abs(float(error)) / BIT, float(violation) / BIT)
    return worst


def plot_codes(encoders: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(encoders), size=(9.6, 3.4))
    for ax, (name, encoder) in zip(axes[0], encoders.items(), strict=True):
        ax.imshow(encoder.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        ax.set_title(name)
        ax.set_xticks(range(4), list("ABCD"))
        ax.set_yticks(range(len(NAMES)), NAMES if ax is axes[0, 0] else [""] * len(NAMES))
        ax.tick_params(length=0)
        ax.grid(visible=False)
    return figure


def plot_parts(numbers: dict[str, RateDistortionTerms]) -> "Figure":
    figure, axes = subplots(size=(9.0, 3.8))
    ax = axes[0, 0]
    entropy_bits = float(entropy(DATA, base=2.0))
    for row, code in enumerate(numbers.values()):
        parts = {
            "information I(X,Z)": code.information,
            "conditional entropy H(X) − I": code.data_entropy - code.information,
            "suboptimal decoder": code.distortion - code.data_entropy + code.information,
            "prior, KL(q(z) ‖ p(z))": code.marginal_kl,
        }
        left = 0.0
        for (name, part), colour in zip(parts.items(), (PALETTE[0], FAINT, PALETTE[1], PALETTE[4]), strict=True):
            width = max(0.0, float(part) / BIT)
            ax.barh(row, width, left=left, color=colour, height=0.6, label=name if row == 0 else None)
            left += width
        ax.annotate(f"{left:.2f}", (left, row), xytext=(5, 0), textcoords="offset points", va="center")
    ax.axvline(entropy_bits, color=INK, linestyle="--", linewidth=1)
    ax.annotate(
        "H(X)", (entropy_bits, 1), xycoords=("data", "axes fraction"), xytext=(4, -2), textcoords="offset points"
    )
    ax.set_yticks(range(len(numbers)), list(numbers))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.margins(x=0.1)
    ax.set_xlabel("negative ELBO (bits)")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=4)
    return figure


def plot_plane(numbers: dict[str, RateDistortionTerms], trained: dict[float, list[tuple[Tensor, Tensor]]]) -> "Figure":
    figure, axes = subplots(size=(6.6, 4.8))
    ax = axes[0, 0]
    entropy_bits = float(entropy(DATA, base=2.0))
    ax.plot([0, entropy_bits], [entropy_bits, 0], color=INK, linewidth=1, linestyle="--", label="D + R = H(X)")
    ax.fill_between([0, entropy_bits], [entropy_bits, 0], color=FAINT, alpha=0.25, linewidth=0)
    for (beta, ends), colour in zip(trained.items(), (PALETTE[2], PALETTE[0], PALETTE[4]), strict=True):
        rate, distortion = torch.tensor(ends).T
        ax.scatter(rate, distortion, s=34, color=colour, alpha=0.7, linewidths=0, label=f"trained with β = {beta:g}")
    for name, code in numbers.items():
        point = float(code.rate) / BIT, float(code.distortion) / BIT
        ax.plot(*point, "x", color=PALETTE[1], markersize=8, markeredgewidth=2)
        below = name == "by legs"  # avoids the label of its neighbour
        offset = (-8, -12) if below else (8, 6)
        ax.annotate(name, point, xytext=offset, textcoords="offset points", fontsize=8, ha="right" if below else "left")
    ax.set(xlabel="rate R (bits)", ylabel="distortion D (bits)", xlim=(-0.1, 3.5), ylim=(0, 3.4))
    ax.legend(loc="upper right")
    return figure


def plot_redundancy(code_lengths: CodeLengths, frequencies: Tensor) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.4))
    data_entropy = float(entropy(code_lengths.frequencies, base=2.0))
    positions = np.arange(len(NAMES))
    axes[0, 0].bar(positions - 0.2, code_lengths.frequencies.numpy(), width=0.4, color=PALETTE[0], label="P, empirical")
    q = frequencies.double() / frequencies.sum()
    axes[0, 0].bar(positions + 0.2, q.numpy(), width=0.4, color=PALETTE[1], label="Q, of the codes")
    axes[0, 0].set_xticks(range(len(NAMES)), NAMES)
    axes[0, 0].set_ylabel("probability")
    axes[0, 0].legend()
    names = list(code_lengths.bits)
    bars = axes[0, 1].barh(names, list(code_lengths.bits.values()), color=PALETTE[0], height=0.6)
    axes[0, 1].bar_label(bars, fmt="{:.3f}", padding=3)
    for value, name, side in (
        (data_entropy, "H(P)", "right"),
        (data_entropy + code_lengths.divergence, "H(P) + KL(P ‖ Q)", "left"),
    ):
        axes[0, 1].axvline(value, color=INK, linestyle="--", linewidth=1)
        offset = (-4 if side == "right" else 4, 0)
        axes[0, 1].annotate(
            f"{name} = {value:.3f}", (value, -0.6), xytext=offset, textcoords="offset points", ha=side, fontsize=8
        )
    axes[0, 1].set(
        xlabel="code length (bits per symbol)", ylim=(2.5, -0.8), xlim=(0, 1.5 * max(code_lengths.bits.values()))
    )
    axes[0, 1].grid(visible=False, axis="y")
    return figure
