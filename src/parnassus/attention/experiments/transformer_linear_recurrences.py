"""A transformer predicts linear recurrences; without a causal mask the targets leak into the input (Diehl sec. 3).

Continue a sequence: echo "1 2 5 12" | parnassus predict last --num-terms 4
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast

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
from parnassus.data import DataError, Split
from parnassus.optim import Adam
from parnassus.report import PALETTE, subplots
from parnassus.report.style import DIVERGING, SEQUENTIAL
from parnassus.train import ModelCollection, Positive, Run, UnitInterval, at_least, at_most, between, descend
from parnassus.train.sample_predict_evaluate import Input, ResultRow, non_empty_lines
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-12", "D3.4")
expected = {
    "entropy": between(0.183, 0.1832, "minimum of the nats per term: two uniform choices among three in twelve terms"),
    "masked": between(0.183, 0.24, "negative log-likelihood per term in nats, causal mask"),
    "masked_excess": between(-1e-4, 0.05, "negative log-likelihood per term above the minimum in nats, causal mask"),
    "unmasked": at_most(
        0.1, "negative log-likelihood per term in nats, no mask: below the minimum, since the targets leak"
    ),
    "masked_accuracy": at_least(0.9, "fraction of sequences continued without error from three terms, causal mask"),
    "unmasked_accuracy": at_most(0.75, "fraction of sequences continued without error from three terms, no mask"),
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
    num_examples: Positive[int] = 10_000  # training sequences, sampled with replacement
    modulus: Positive[int] = 97  # prime modulus of the terms; without it there would be 409,153 tokens
    width: Positive[int] = 64  # width of the two blocks of two heads
    dim_feedforward: Positive[int] = 32  # hidden units of their MLPs
    dropout: UnitInterval = 0.1  # dropout probability
    learning_rate: Positive[float] = 2e-3  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        table = linear_recurrences(self.modulus).to(run.device)
        indices = torch.randint(len(table), (self.num_examples,), generator=torch.Generator().manual_seed(run.seed))
        models, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.learning_rate))
        batches = Split(table[indices.to(run.device)]).batches(self.batch_size, self.steps)
        for step, loss in descend(run, models, optimizer, batches):
            run.log(step, loss=loss / 2)

        models.eval()
        entropies = conditional_entropies(table)
        with torch.no_grad():
            nats = {name: model.nll(table).mean(0).cpu() for name, model in models.named_models()}
        continued = {
            name: model.generate(table[:, :PROMPT_TERMS], NUM_TERMS - PROMPT_TERMS)
            for name, model in models.named_models()
        }
        correct = {name: (rows == table).all(1).cpu() for name, rows in continued.items()}
        run.figure(
            "negative log-likelihood by term",
            plot_nats(entropies, nats),
            "Negative log-likelihood of each term, mean over all 27 sequences, with the conditional entropy as lower "
            "bound: two coefficients are unknown, then every term is determined. Without the mask the loss falls "
            "below the bound, because the target is part of the input.",
        )
        plot_attention(run, models, table[-1:])
        plot_encodings(run)
        rows = torch.linspace(8, len(table) - 1, 5).long().tolist()
        run.table(
            "continuations",
            [
                {
                    "correct": format_terms(table[row]),
                    **{TITLES[name]: format_terms(terms[row, PROMPT_TERMS:]) for name, terms in continued.items()},
                }
                for row in rows
            ],
            f"Greedy continuations of the first {PROMPT_TERMS} terms, modulo {self.modulus}.",
        )
        run.note(
            "target leakage",
            "In the tutorial each position attends to the next term, which is its target, so that the training loss is "
            "meaningless; a loss below the conditional entropy reveals it. There are only 27 distinct sequences, "
            f"sampled {self.num_examples:,} times: the transformer memorises them and does not learn arithmetic. "
            "Positions are encoded by sines and cosines; in the tutorial the exponent is doubled twice.",
        )
        return {
            "entropy": float(entropies.mean()),
            **{name: float(nll.mean()) for name, nll in nats.items()},
            "masked_excess": float(nats["masked"].mean() - entropies.mean()),
            **{f"{name}_accuracy": float(rows.float().mean()) for name, rows in correct.items()},
        }

    def model(self) -> ModelCollection[RecurrencePredictor]:
        return ModelCollection(
            {"masked": self.build_predictor(causal=True), "unmasked": self.build_predictor(causal=False)}
        )

    def build_predictor(self, *, causal: bool) -> RecurrencePredictor:
        blocks = [
            Block(
                SelfAttention(self.width, 2, causal=causal, dropout=self.dropout),
                feed_forward(self.width, self.dim_feedforward, dropout=self.dropout),
                norm=partial(nn.LayerNorm, self.width),
            )
            for _ in range(2)
        ]
        return RecurrencePredictor(SinusoidalEmbedding(self.modulus, self.width), blocks)


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)
    network: Literal["masked", "unmasked"] = "masked"  # with a causal mask, or without
    num_terms: Positive[int] = 5  # terms to predict

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """The most probable next terms of the sequence in each line, one after the other."""
        model = cast("ModelCollection[RecurrencePredictor]", trained.model).model(self.network)
        modulus = cast("Experiment", trained.experiment).modulus
        for line in non_empty_lines(inputs):
            parts = line.replace(",", " ").split()
            if not all(part.isdecimal() and int(part) < modulus for part in parts):
                raise DataError(f"terms must be integers from 0 to {modulus - 1}; got {line!r}")
            terms = torch.tensor([[int(part) for part in parts]])
            continued = model.generate(terms, self.num_terms)[0, len(parts) :]
            yield {"terms": line, "next_terms": format_terms(continued)}


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
    ax.set(xlabel="predicted term", ylabel="negative log-likelihood (nats)", xticks=term.tolist())
    ax.legend()
    return figure


def plot_attention(run: Run, models: "ModelCollection[RecurrencePredictor]", terms: Tensor) -> None:
    """Attention maps with and without the mask: mean over heads, maximum over blocks."""
    figure, axes = subplots(1, 2, size=(8.4, 4.2))
    labels = [str(int(term)) for term in terms[0, :-1]]
    for ax, (name, model) in zip(axes[0], models.named_models(), strict=True):
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


def plot_encodings(run: Run) -> None:
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
