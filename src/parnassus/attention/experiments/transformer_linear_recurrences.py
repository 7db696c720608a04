"""A transformer predicts linear recurrences; without a causal mask the targets leak into the input (Diehl sec. 3)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.models.recurrence_predictor import (
    NUM_TERMS,
    RecurrencePredictor,
    conditional_entropies,
    linear_recurrences,
)
from parnassus.attention.positions.sinusoidal import SinusoidalEmbedding, sines_and_cosines, sinusoidal_encoding
from parnassus.data import Split
from parnassus.optim import Adam
from parnassus.report import PALETTE, subplots
from parnassus.report.style import DIVERGING, SEQUENTIAL
from parnassus.train import Positive, Run, SideBySide, UnitInterval, at_least, at_most, between, descend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-12", "D3.4")
expected = {
    "entropy": between(0.183, 0.1832, "minimum nats per term: two uniform choices among three in twelve terms"),
    "masked": between(0.183, 0.24, "nats per term with the causal mask"),
    "masked_excess": between(-1e-4, 0.05, "nats per term with the causal mask above the minimum"),
    "unmasked": at_most(0.1, "nats per term without the mask: below the minimum, since the targets leak"),
    "masked_accuracy": at_least(0.9, "fraction of sequences continued without error from three terms"),
    "unmasked_accuracy": at_most(0.75, "the same without the mask"),
}
profiles = {
    "smoke": {"steps": 3, "width": 16},
    "gpu": {"steps": 3_900, "width": 512},  # 25 epochs of 10,000 sequences, as in the tutorial
}

PROMPT_TERMS = 3  # terms from which a sequence is continued
TITLES = {"masked": "causal mask", "unmasked": "no mask"}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 500  # gradient steps
    batch_size: Positive[int] = 64  # sequences per gradient step
    num_examples: Positive[int] = 10_000  # training sequences, drawn with replacement
    modulus: Positive[int] = 97  # prime modulus of the terms; without it there would be 409,153 tokens
    width: Positive[int] = 64  # width of the two blocks of two heads
    hidden_size: Positive[int] = 32  # hidden units of their MLPs
    dropout: UnitInterval = 0.1  # dropout probability
    learning_rate: Positive[float] = 2e-3  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        table = linear_recurrences(self.modulus).to(run.device)
        indices = torch.randint(len(table), (self.num_examples,), generator=torch.Generator().manual_seed(run.seed))
        models, optimizer = run.prepare(
            SideBySide[RecurrencePredictor]({"masked": self.model(causal=True), "unmasked": self.model(causal=False)}),
            partial(Adam, lr=self.learning_rate),
        )
        batches = Split(table[indices.to(run.device)]).batches(self.batch_size, self.steps)
        for step, loss in descend(run, models, optimizer, batches):
            run.log(step, loss=loss / 2)

        models.eval()
        entropies = conditional_entropies(table)
        with torch.no_grad():
            nats = {name: model.nll(table).mean(0).cpu() for name, model in models.every()}
        continued = {
            name: model.generate(table[:, :PROMPT_TERMS], NUM_TERMS - PROMPT_TERMS) for name, model in models.every()
        }
        correct = {name: (rows == table).all(1).cpu() for name, rows in continued.items()}
        run.figure(
            "nats per term",
            plot_nats(entropies, nats),
            "Negative log-likelihood of each term, mean over all 27 sequences, with the conditional entropy as lower "
            "bound: two coefficients are unknown, then every term is determined. Without the mask the loss falls "
            "below the bound, because the target is part of the input.",
        )
        show_attention(run, models, table[-1:])
        show_encodings(run)
        rows = torch.linspace(8, len(table) - 1, 5).long().tolist()
        run.table(
            "continuations",
            [
                {
                    "true": format_terms(table[row]),
                    **{TITLES[name]: format_terms(terms[row, PROMPT_TERMS:]) for name, terms in continued.items()},
                }
                for row in rows
            ],
            f"Greedy continuations of the first {PROMPT_TERMS} terms, modulo {self.modulus}.",
        )
        run.note(
            "target leakage",
            "In the tutorial each position attends to the next term, which is its target, so that the training loss is "
            "meaningless; a loss below the conditional entropy reveals it. There are only 27 distinct sequences, drawn "
            f"{self.num_examples:,} times: the transformer memorises them and does not learn arithmetic. Positions "
            "are encoded by sines and cosines; in the tutorial the exponent is doubled twice.",
        )
        return {
            "entropy": float(entropies.mean()),
            **{name: float(nll.mean()) for name, nll in nats.items()},
            "masked_excess": float(nats["masked"].mean() - entropies.mean()),
            **{f"{name}_accuracy": float(rows.float().mean()) for name, rows in correct.items()},
        }

    def model(self, *, causal: bool) -> RecurrencePredictor:
        blocks = [
            Block(
                SelfAttention(self.width, 2, causal=causal, dropout=self.dropout),
                feed_forward(self.width, self.hidden_size, dropout=self.dropout),
                norm=partial(nn.LayerNorm, self.width),
            )
            for _ in range(2)
        ]
        return RecurrencePredictor(SinusoidalEmbedding(self.modulus, self.width), blocks)


def format_terms(terms: Tensor) -> str:
    return " ".join(str(int(term)) for term in terms)


def plot_nats(entropies: Tensor, nats: dict[str, Tensor]) -> "Figure":
    """Negative log-likelihood by term, with the conditional entropies as steps."""
    figure, axes = subplots(size=(7.2, 3.8))
    ax, term = axes[0, 0], torch.arange(1, len(entropies) + 1)
    edges = torch.arange(len(entropies) + 1) + 0.5
    ax.stairs(entropies.numpy(), edges.numpy(), color=PALETTE[7], label="conditional entropy", linewidth=2)
    for (name, nll), colour, marker in zip(nats.items(), PALETTE, ("o", "s"), strict=False):
        ax.plot(term, nll, color=colour, marker=marker, markersize=5, label=TITLES[name])
    ax.set(xlabel="predicted term", ylabel="nats per term", xticks=term.tolist())
    ax.legend()
    return figure


def show_attention(run: Run, models: "SideBySide[RecurrencePredictor]", terms: Tensor) -> None:
    """Attention maps with and without the mask: mean over heads, maximum over blocks."""
    figure, axes = subplots(1, 2, size=(8.4, 4.2))
    labels = [str(int(term)) for term in terms[0, :-1]]
    for ax, (name, model) in zip(axes[0], models.every(), strict=True):
        maps = torch.stack([weights[0].mean(0) for weights in attention_maps(model, terms[:, :-1]).values()])
        ax.imshow(maps.amax(0).cpu().numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
        ax.set(title=TITLES[name], xlabel="key", ylabel="query")
        ax.set_xticks(range(len(labels)), labels)
        ax.set_yticks(range(len(labels)), labels)
        ax.grid(visible=False)
    run.figure(
        "attention maps",
        figure,
        "Attention weights on one sequence, mean over heads, maximum over the two blocks. Entries above the diagonal "
        "are later terms: without the mask they have weight, and a few terms identify the sequence.",
    )


def show_encodings(run: Run) -> None:
    """Sinusoidal encodings of 2,000 positions with width 512, and those with the exponent of the tutorial."""
    positions, even = torch.arange(2_000, dtype=torch.float64), torch.arange(0, 512, 2, dtype=torch.float64)
    encodings = {
        "pos / 10000^(2i/d)": sinusoidal_encoding(positions, 512),
        "tutorial: pos / 10000^(4i/d)": sines_and_cosines(positions, 10_000.0 ** (-2 * even / 512)).mT.flatten(-2),
    }
    figure, axes = subplots(1, 2, size=(10.4, 4.4))
    for ax, (title, encoding) in zip(axes[0], encodings.items(), strict=True):
        image = ax.imshow(encoding.numpy(), cmap=DIVERGING, vmin=-1, vmax=1, extent=(0, 512, 2_000, 0))
        image.set_interpolation("antialiased")  # avoids aliasing of high frequencies
        ax.set_aspect("auto")
        ax.set(title=title, xlabel="dimension", ylabel="position")
        ax.grid(visible=False)
    figure.colorbar(image, ax=axes[0].tolist()).outline.set_visible(False)
    run.figure(
        "positional encodings",
        figure,
        "A row is the encoding of a position. Right: more than half of the dimensions are nearly constant, because the "
        "index i, already even, is doubled again.",
    )
