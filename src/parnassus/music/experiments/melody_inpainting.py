"""Melody inpainting by a masked language model against a causal one (book sec. 10.1.2).

Fill the gaps of your own melody: parnassus sample last --melody "C4 E4 G4 E4 _ _ _ _ C4 D4 E4 C4"
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from parnassus.attention.models.bert import MaskedLanguageModel
from parnassus.attention.models.encoder import encoder
from parnassus.attention.models.gpt import LanguageModel, gpt
from parnassus.data import DataError, Split
from parnassus.music.commands.model_training import train_models
from parnassus.music.commands.sample_notes import NoteSample, format_pieces
from parnassus.music.form import BAR, HIGHEST, LOWEST, PLAN, sections, train_and_test_pieces
from parnassus.music.inpainting import inpaint, resample_notes
from parnassus.music.keys import Key
from parnassus.music.note_names import format_bars, parse_pitch, pitch_name
from parnassus.report import PALETTE, curves, subplots
from parnassus.text.generation import generate
from parnassus.text.sampling import greedy, token_sampler
from parnassus.train import (
    ModelCollection,
    Positive,
    Run,
    Text,
    UnitInterval,
    at_least,
    at_most,
    between,
    no_band,
)

covers = ("B10.1.2-5",)
expected = {
    "in_key/masked": at_least(
        0.9, "fraction of inpainted notes in the section's scale, mean over masked bars, masked model"
    ),
    "in_key/causal": no_band(
        "fraction of inpainted notes in the section's scale, causal model: only notes before the gap"
    ),
    "in_key/first_bar/masked": at_least(
        0.85, "fraction of inpainted notes in the scale if the first bar is masked, masked model"
    ),
    "in_key/first_bar/causal": at_most(
        0.8, "fraction of inpainted notes in the scale if the first bar is masked, causal model: no context"
    ),
    "accuracy/masked": at_least(
        0.45, "fraction of inpainted notes equal to the original; octave and motif are random except in cadences"
    ),
    "accuracy/causal": no_band("fraction of inpainted notes equal to the original, causal model"),
    "changed": between(0.2, 0.95, "fraction of resampled notes that differ from the original"),
    "varied_in_key": at_least(0.85, "fraction of resampled notes in the scale"),
}
profiles = {"smoke": {"steps": 4, "num_examples": 64, "num_test": 16, "width": 16}}

FIRST = MaskedLanguageModel.FIRST
"""Token of the lowest note; 0 is the start token of the causal model, 1 the mask."""
NAMES = {"masked": "masked model", "causal": "causal model"}


@dataclass(frozen=True)
class Experiment:
    num_bars: Positive[int] = 2  # bars in each of the four sections; the last is a cadence
    num_examples: Positive[int] = 20_000  # training pieces
    num_test: Positive[int] = 100  # test pieces
    mask_fraction: UnitInterval = 0.3  # fraction of the notes masked in training
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 32  # pieces per gradient step
    width: Positive[int] = 64  # channels of both models
    num_layers: Positive[int] = 2  # transformer blocks
    learning_rate: Positive[float] = 3e-3  # peak learning rate of the 1cycle schedule

    def model(self) -> ModelCollection[MaskedLanguageModel | LanguageModel]:
        notes, window = FIRST + HIGHEST - LOWEST + 1, 1 + len(PLAN) * self.num_bars * BAR
        two_sided = encoder(notes, window, width=self.width, depth=self.num_layers)
        causal = gpt(notes, window, width=self.width, depth=self.num_layers)
        return ModelCollection(
            {"masked": MaskedLanguageModel(two_sided, mask_probability=self.mask_fraction), "causal": causal}
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, test, home = train_and_test_pieces(self.num_examples, self.num_test, bars=self.num_bars, seed=run.seed)
        batches = Split(as_tokens(train).to(run.device)).batches(self.batch_size, self.steps)
        models = train_models(run, run.build(self.model), batches, learning_rate=self.learning_rate)

        tokens, masked, causal = as_tokens(test).to(run.device), models.model("masked"), models.model("causal")
        if not isinstance(masked, MaskedLanguageModel) or not isinstance(causal, LanguageModel):
            raise TypeError("the models must be a MaskedLanguageModel and a LanguageModel")
        masked.eval()
        inpainted = {"masked": test.clone(), "causal": test.clone()}
        for start in range(0, test.shape[1], BAR):  # mask one bar at a time
            bar = slice(start, start + BAR)
            gap = tokens.clone()
            gap[:, 1 + start : 1 + start + BAR] = masked.MASK
            inpainted["masked"][:, bar] = as_pitches(inpaint(masked, gap, greedy))[:, bar]
            after = generate(causal.eval(), tokens[:, : 1 + start], greedy, BAR)
            inpainted["causal"][:, bar] = as_pitches(nn.functional.pad(after, (1, 0)))
        note = torch.arange(tokens.shape[1]) - 1
        resampled = ((note // BAR) % self.num_bars == 0) & (note >= BAR)  # the first bar of each section but the first
        varied = as_pitches(resample_notes(masked, tokens, resampled.to(run.device), token_sampler()))
        free = [bar for bar in range(len(PLAN) * self.num_bars) if (bar + 1) % self.num_bars]
        plot_bars(run, {name: (notes == test, is_in_scale(notes, home)) for name, notes in inpainted.items()}, free)
        plot_variation(run, {"original": test[0], "variation": varied[0]}, resampled[1:], home=int(home[0]))
        return {
            **{f"in_key/{name}": fraction(is_in_scale(notes, home)) for name, notes in inpainted.items()},
            **{
                f"in_key/first_bar/{name}": fraction(is_in_scale(notes, home)[:, :BAR])
                for name, notes in inpainted.items()
            },
            **{f"accuracy/{name}": fraction(notes == test) for name, notes in inpainted.items()},
            "changed": fraction((varied != test)[:, resampled[1:]]),
            "varied_in_key": fraction(is_in_scale(varied, home)[:, resampled[1:]]),
        }


@dataclass(frozen=True)
class Sample(NoteSample):
    melody: Text = ""  # notes, with _ for each note to fill in; by default new pieces from the masked model alone

    def write(self, models: ModelCollection[MaskedLanguageModel | LanguageModel]) -> Iterator[str]:
        """Melodies whose gaps the masked model has filled; notes are filled in the order of their certainty."""
        masked, causal = models.model("masked"), models.model("causal")
        assert isinstance(masked, MaskedLanguageModel)
        assert isinstance(causal, LanguageModel)
        gaps = self.tokens(max_notes=causal.window - 1).to(next(models.parameters()).device)
        notes = as_pitches(inpaint(masked, gaps.expand(self.num_samples, -1), self.sampler()))
        return format_pieces([[format_bars([pitch_name(pitch) for pitch in row], BAR)] for row in notes.tolist()])

    def tokens(self, max_notes: int) -> Int[Tensor, "1 time_and_one"]:
        """The melody as tokens after the start token, with masks in its gaps."""
        names = self.melody.split() or ["_"] * max_notes
        if len(names) > max_notes:
            raise DataError(f"melody must have at most {max_notes} notes, as many as in training; got {len(names)}")
        pitches = [LOWEST if name == "_" else parse_pitch(name) for name in names]
        if not LOWEST <= min(pitches) <= max(pitches) <= HIGHEST:
            lowest, highest = pitch_name(LOWEST), pitch_name(HIGHEST)
            raise DataError(f"notes must lie between {lowest} and {highest}, as in training; got {self.melody!r}")
        is_gap = torch.tensor([False] + [name == "_" for name in names])
        return as_tokens(torch.tensor([pitches])).masked_fill(is_gap, MaskedLanguageModel.MASK)


def as_tokens(pieces: Int[Tensor, "count time"]) -> Int[Tensor, "count time_and_one"]:
    """Pitches as tokens, after the start token."""
    return nn.functional.pad(pieces - LOWEST + FIRST, (1, 0))


def as_pitches(tokens: Int[Tensor, "count time_and_one"]) -> Int[Tensor, "count time"]:
    return tokens[:, 1:].cpu() - FIRST + LOWEST


def fraction(condition: Bool[Tensor, "..."]) -> float:
    return float(condition.double().mean())


def is_in_scale(pieces: Int[Tensor, "count time"], home: Int[Tensor, " count"]) -> Bool[Tensor, "count time"]:
    """Whether each note belongs to the key of its section."""
    scales = torch.tensor([[key.scale for key in sections(Key(tonic))] for tonic in home.tolist()])
    notes = pieces.view(len(pieces), len(PLAN), -1)
    return (notes[..., None] % 12 == scales[:, :, None]).any(-1).flatten(1)


def plot_bars(run: Run, results: dict[str, tuple[Tensor, Tensor]], free: list[int]) -> None:
    fractions = {}
    for name, (correct, fits) in results.items():
        for measure, values in {"in key": fits, "equal to the original": correct}.items():
            by_bar = values.double().view(len(values), -1, BAR).mean((0, 2))
            fractions[f"{NAMES[name]}: {measure}"] = ([bar + 1 for bar in free], by_bar[free])
    run.figure(
        "accuracy by masked bar",
        curves(fractions, x_label="masked bar", y_label="fraction of the masked notes"),
        "Each bar of the test pieces is masked in turn, except cadences. The key and the motif of an early bar can "
        "be inferred only from later notes. Octave and motif of a bar are random, so no model can restore all notes.",
    )


def plot_variation(run: Run, pieces: dict[str, Tensor], resampled: Tensor, *, home: int) -> None:
    figure, axes = subplots(len(pieces), 1, size=(9.0, 1.9 * len(pieces)))
    for ax, (name, notes) in zip(axes[:, 0], pieces.items(), strict=True):
        time = torch.arange(len(notes))
        ax.scatter(time[~resampled], notes[~resampled], s=14, color=PALETTE[0], label="kept")
        ax.scatter(time[resampled], notes[resampled], s=14, color=PALETTE[1], label="resampled")
        for edge in range(0, len(notes) + 1, len(notes) // len(PLAN)):
            ax.axvline(edge - 0.5, color="grey", linewidth=0.6)
        ax.set_title(name, fontsize=9, loc="left")
        ax.set(ylabel="pitch", ylim=(LOWEST - 2, HIGHEST + 2))
        ax.grid(visible=False, axis="x")
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    keys = " → ".join(str(key) for key in sections(Key(home)))
    run.figure("variation", figure, f"A test piece, {keys}, and a variation with the same cadences.")
