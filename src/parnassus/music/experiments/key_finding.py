"""Attention and an LSTM return to the home key after two modulations (book sec. 10.1)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.models.gpt import LanguageModel, gpt
from parnassus.attention.models.music_transformer import music_transformer
from parnassus.data import Split
from parnassus.music.commands.model_training import train_models
from parnassus.music.commands.sample_notes import NoteSample, format_pieces
from parnassus.music.form import (
    BAR,
    HIGHEST,
    LOWEST,
    PLAN,
    form_entropy,
    sections,
    train_and_test_pieces,
)
from parnassus.music.keys import KEYS, Key, estimate_key, key_scores
from parnassus.music.note_names import format_bars, pitch_name
from parnassus.recurrent.language_model import RecurrentLanguageModel
from parnassus.report import PALETTE, bar_chart, curves, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.text.generation import generate
from parnassus.text.sampling import token_sampler
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-10", "B10.1.2-4", "B10.1.2-15")
expected = {
    "home/lstm": no_band("fraction of continuations in the home key, LSTM"),
    "home/absolute": at_least(
        0.9, "fraction of continuations in the home key, attention with learned absolute positions"
    ),
    "home/relative": at_least(
        0.9, "fraction of continuations in the home key, attention with learned relative positions"
    ),
    "home/true": at_least(
        0.9, "fraction of the original endings in the home key: accuracy of key estimation from 16 notes"
    ),
    "excess/lstm": no_band("mean negative log-likelihood of a piece minus its entropy, in nats, LSTM"),
    "excess/absolute": at_most(
        11.0, "mean negative log-likelihood of a piece minus its entropy, in nats, absolute positions"
    ),
    "excess/relative": at_most(
        11.0, "mean negative log-likelihood of a piece minus its entropy, in nats, relative positions"
    ),
    "entropy": no_band("entropy of a piece in nats, the smallest possible loss"),
}
profiles = {"smoke": {"steps": 4, "num_examples": 64, "num_test": 16, "width": 16}}

START = 0
"""Start token; notes are tokens from 1."""
NAMES = {"lstm": "LSTM", "absolute": "attention, absolute positions", "relative": "attention, relative positions"}


@dataclass(frozen=True)
class Experiment:
    num_bars: Positive[int] = 4  # bars in each of the four sections
    num_examples: Positive[int] = 20_000  # training pieces
    num_test: Positive[int] = 300  # test pieces
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 32  # pieces per gradient step
    width: Positive[int] = 64  # channels of every model
    num_layers: Positive[int] = 2  # layers of every model
    learning_rate: Positive[float] = 3e-3  # peak learning rate of the 1cycle schedule

    def model(self) -> ModelCollection[LanguageModel | RecurrentLanguageModel]:
        notes, window = HIGHEST - LOWEST + 2, len(PLAN) * self.num_bars * BAR
        size = {"width": self.width, "depth": self.num_layers}
        return ModelCollection(
            {
                "lstm": RecurrentLanguageModel(notes, **size),
                "absolute": gpt(notes, window, heads=4, **size),
                "relative": music_transformer(notes, window, heads=4, **size),
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, test, home = train_and_test_pieces(self.num_examples, self.num_test, bars=self.num_bars, seed=run.seed)
        batches = Split(as_tokens(train).to(run.device)).batches(self.batch_size, self.steps)
        models = train_models(run, run.build(self.model), batches, learning_rate=self.learning_rate)

        tokens = as_tokens(test).to(run.device)
        start = 1 + tokens.shape[1] * 3 // 4  # of the last section
        entropy = form_entropy(self.num_bars)
        losses: dict[str, Tensor] = {}
        fractions, endings = {"true": fraction_in_home_key(test[:, start - 1 :], home)}, {"true": test[:, start - 1 :]}
        with torch.no_grad():
            for name, model in models.named_models():
                losses[name] = model.eval().nll(tokens).cpu()
                generated = generate(model, tokens[:, :start], token_sampler(temperature=1.0), tokens.shape[1] - start)
                endings[name] = (generated.cpu() + LOWEST - 1).clamp(min=LOWEST)
                fractions[name] = fraction_in_home_key(endings[name], home)
        self.plot_results(run, models, tokens, losses=losses, fractions=fractions)
        plot_endings(run, test, endings, start - 1, int(home[0]))
        return {
            **{f"home/{name}": fraction for name, fraction in fractions.items()},
            **{f"excess/{name}": float(loss.sum(1).mean()) - entropy for name, loss in losses.items()},
            "entropy": entropy,
        }

    def plot_results(
        self,
        run: Run,
        models: ModelCollection[LanguageModel | RecurrentLanguageModel],
        tokens: Tensor,
        *,
        losses: Mapping[str, Tensor],
        fractions: Mapping[str, float],
    ) -> None:
        values = {NAMES.get(name, "original endings"): fraction for name, fraction in fractions.items()}
        run.figure(
            "endings in the home key",
            bar_chart(values, x_label="fraction of endings in the home key", reference=("chance", 1 / len(KEYS))),
            "Each model continues the first three sections of test pieces by a fourth. Its key is estimated by the "
            "Krumhansl profiles, which are nearly always right for original endings.",
        )
        notes = range(1, tokens.shape[1])
        lines = {NAMES[name]: (list(notes), loss.mean(0)) for name, loss in losses.items()}
        run.figure(
            "loss by position",
            curves(lines, x_label="note of the piece", y_label="negative log-likelihood (nats)"),
            "Loss by position: the first note determines the key, the first of a bar its octave, the next its motif. "
            "The LSTM has a larger loss where the key must be remembered.",
        )
        maps = attention_maps(models.model("relative"), tokens[:1, :-1])
        run.figure(
            "attention maps",
            plot_attention(torch.stack([layer[0].mean(0) for layer in maps.values()]).cpu(), self.num_bars * BAR),
            "Attention with relative positions, mean over the heads of each layer: rows are queries, columns keys; "
            "lines separate the four sections.",
        )


@dataclass(frozen=True)
class Sample(NoteSample):
    network: Literal["relative", "absolute", "lstm"] = "relative"  # attention by type of positions, or LSTM

    def write(self, models: ModelCollection[LanguageModel | RecurrentLanguageModel]) -> Iterator[str]:
        """New pieces, one line per section with its estimated key."""
        length = models.model("absolute").window
        assert length is not None
        start = torch.full((self.num_samples, 1), START, device=next(models.parameters()).device)
        tokens = generate(models.model(self.network), start, self.sampler(1), length)
        return format_pieces([format_sections(piece) for piece in tokens.cpu() - 1 + LOWEST])


def format_sections(piece: Int[Tensor, " time"]) -> list[str]:
    """Each section of a piece with its estimated key."""
    return [
        f"{estimate_key(part)!s:<8}  {format_bars([pitch_name(pitch) for pitch in part.tolist()], BAR)}"
        for part in piece.chunk(len(PLAN))
    ]


def as_tokens(pieces: Int[Tensor, "count time"]) -> Int[Tensor, "count time_and_one"]:
    """Pitches as tokens from 1, after the start token."""
    return nn.functional.pad(pieces - LOWEST + 1, (1, 0), value=START)


def fraction_in_home_key(endings: Int[Tensor, "count time"], home: Int[Tensor, " count"]) -> float:
    """Fraction of endings whose estimated key is the home key."""
    return float((key_scores(endings).argmax(1) == home).double().mean())  # major keys come first, by tonic


def plot_endings(run: Run, test: Tensor, endings: Mapping[str, Tensor], cut: int, home: int) -> None:
    keys = " → ".join(str(key) for key in sections(Key(home)))
    figure, axes = subplots(len(endings), 1, size=(9.0, 1.5 * len(endings)))
    for ax, (name, after) in zip(axes[:, 0], endings.items(), strict=True):
        before = test[0, :cut]
        ax.scatter(range(cut), before.numpy(), s=9, color=PALETTE[0])
        ax.scatter(range(cut, cut + after.shape[1]), after[0].numpy(), s=9, color=PALETTE[1])
        ax.set_title(NAMES.get(name, "original ending"), fontsize=9, loc="left")
        ax.set(ylabel="pitch", ylim=(LOWEST - 2, HIGHEST + 2))
    run.figure("endings", figure, f"A test piece, {keys}: its last section, and the continuation by each model.")


def plot_attention(maps: Tensor, section: int) -> "Figure":
    """One attention map for each layer, with lines between the sections."""
    figure, axes = subplots(1, len(maps), size=(4.2 * len(maps), 4.0))
    for number, (ax, weights) in enumerate(zip(axes[0], maps, strict=True)):
        ax.imshow(weights.sqrt().numpy(), cmap=SEQUENTIAL, vmin=0)
        for edge in range(section, len(weights), section):
            ax.axhline(edge - 0.5, color=PALETTE[1], linewidth=0.6)
            ax.axvline(edge - 0.5, color=PALETTE[1], linewidth=0.6)
        ax.set(title=f"layer {number + 1}", xlabel="note", ylabel="note" if number == 0 else "")
        ax.grid(visible=False)
    return figure
