"""Sequence-to-sequence transformer from chords to a solo (book sec. 10.1.2).

Solos over your own chords: parnassus sample last --chords "C Am F G C"
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.attention.commands.programs import transformer_programs
from parnassus.attention.models.seq2seq import ConditionedDecoder, Transformer, seq2seq
from parnassus.data import DataError, Split
from parnassus.music.commands.model_training import train_models
from parnassus.music.commands.sample_notes import NoteSample, format_pieces
from parnassus.music.note_names import parse_chord, pitch_name
from parnassus.music.solo import (
    CADENCE,
    CHORDS,
    HIGHEST,
    LOWEST,
    NOTES,
    Solos,
    chord_name,
    chord_tone_fraction,
    chord_tones,
    generate_solos,
    is_on_beat,
    sample_progressions,
    solo_nll,
)
from parnassus.report import PALETTE, bar_chart, heatmap, subplots
from parnassus.text.generation import generate
from parnassus.text.sampling import token_sampler
from parnassus.train import ModelCollection, Positive, Run, Text, at_least, at_most, no_band
from parnassus.train.export import Programs
from parnassus.train.trained import TrainedRun

covers = ("B10.1.2-7",)
expected = {
    "chord_tones/with_chords": at_least(0.75, "fraction of notes on beats that are chord tones, variable chords only"),
    "chord_tones/without_chords": at_most(
        0.6, "fraction of notes on beats that are chord tones, encoder without chords"
    ),
    "chord_tones/scale": no_band("fraction of notes on beats that are chord tones, random notes of the scale: 3 of 7"),
    "nll/with_chords": at_most(1.1, "mean −log p of a note of test solos, in nats"),
    "nll/without_chords": no_band("mean −log p of a note of test solos, in nats, encoder without chords"),
    "nll/optimal": no_band("mean −log p of a note under the generating distribution: the minimum of the loss"),
    "sensitivity/own_chord": at_least(0.4, "total variation of p(note on a beat) when its own chord is exchanged"),
    "sensitivity/other_chord": at_most(
        0.2, "total variation of p(note on a beat) when another chord of the piece is exchanged"
    ),
}
profiles = {
    "smoke": {"steps": 4, "num_examples": 64, "num_test": 16, "width": 16, "num_chords": 4},
    "gpu": {
        "steps": 6_000,
        "batch_size": 256,
        "num_major_keys": 12,
        "num_chords": 8,
        "num_layers": 2,
        "num_examples": 100_000,
        "learning_rate": 2e-3,
    },
}

BEGIN = 1
"""Start token; 0 is padding, notes are tokens from 2."""
FREE, FREE_NOTES = slice(1, -len(CADENCE)), slice(NOTES, -NOTES * len(CADENCE))
"""The chords that differ between pieces, and the notes over them; all pieces start with I and end with V, I."""
NAMES = {"with_chords": "with chords", "without_chords": "without chords", "scale": "random notes of the scale"}


class ChordAblation(nn.Module):
    """The model with every chord replaced by a constant token."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def loss(self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m"]) -> Float[Tensor, ""]:
        return self.model.loss(torch.ones_like(source), target)

    def condition_on(self, source: Int[Tensor, "batch n"]) -> ConditionedDecoder:
        return self.model.condition_on(torch.ones_like(source))


@dataclass(frozen=True)
class Experiment:
    num_chords: Positive[int] = 6  # chords per piece, with four notes each
    num_major_keys: Positive[int] = 1  # number of major keys; 1 is C major only
    num_examples: Positive[int] = 20_000  # training pieces
    num_test: Positive[int] = 200  # test pieces
    steps: Positive[int] = 500  # gradient steps
    batch_size: Positive[int] = 64  # pieces per gradient step
    width: Positive[int] = 64  # channels
    num_layers: Positive[int] = 1  # blocks of the encoder and of the decoder
    learning_rate: Positive[float] = 5e-3  # peak learning rate of the 1cycle schedule

    def model(self) -> ModelCollection[Transformer | ChordAblation]:
        build = partial(
            seq2seq,
            (1 + CHORDS, 2 + HIGHEST - LOWEST + 1),
            NOTES * self.num_chords,
            width=self.width,
            heads=4,
            depth=self.num_layers,
            hidden=2 * self.width,
        )
        return ModelCollection({"with_chords": build(), "without_chords": ChordAblation(build())})

    def __call__(self, run: Run) -> dict[str, float]:
        if self.num_chords < 4 or self.num_test < 2:
            raise ValueError(
                "num_chords must be at least 4 and num_test at least 2; "
                f"got num_chords={self.num_chords}, num_test={self.num_test}"
            )
        train = generate_solos(self.num_examples, bars=self.num_chords, keys=self.num_major_keys, seed=2 * run.seed)
        test = generate_solos(self.num_test, bars=self.num_chords, keys=self.num_major_keys, seed=2 * run.seed + 1)
        batches = Split(*as_tokens(train)).to(run.device).pairs(self.batch_size, self.steps)
        models = train_models(run, run.build(self.model), batches, learning_rate=self.learning_rate)

        chords, solos = (tokens.to(run.device) for tokens in as_tokens(test))
        in_scale = chord_tones(test.chords).double().mean() * 12 / 7  # all chord tones are in the scale
        fractions, nats, generated = {"scale": float(in_scale)}, {"optimal": float(solo_nll(test).mean())}, {}
        with torch.no_grad():
            for name, model in models.named_models():
                nats[name] = float(model.eval().loss(chords, solos))
                tokens = generate(model.condition_on(chords), solos[:, :1], token_sampler(), NOTES * self.num_chords)
                generated[name] = LOWEST + (tokens.cpu() - 2).clamp(min=0)
                fractions[name] = chord_tone_fraction(generated[name][:, FREE_NOTES], test.chords[:, FREE])
        full = models.model("with_chords")
        if not isinstance(full, Transformer):
            raise TypeError(f"the model with chords must be a Transformer; got {type(full).__name__}")
        sensitivity = chord_sensitivity(full, chords, solos)
        is_own = torch.eye(self.num_chords, dtype=torch.bool).repeat_interleave(NOTES // 2, 0)[:, FREE]
        self.plot_results(
            run, test.chords[0], {name: notes[0] for name, notes in generated.items()}, fractions, sensitivity
        )
        return {
            **{f"chord_tones/{name}": fraction for name, fraction in fractions.items()},
            **{f"nll/{name}": nll for name, nll in nats.items()},
            "sensitivity/own_chord": float(sensitivity[is_own].mean()),
            "sensitivity/other_chord": float(sensitivity[~is_own].mean()),
        }

    def plot_results(
        self,
        run: Run,
        chords: Tensor,
        generated: Mapping[str, Tensor],
        fractions: Mapping[str, float],
        sensitivity: Tensor,
    ) -> None:
        run.figure(
            "chord tones",
            bar_chart(
                {NAMES[name]: fractions[name] for name in NAMES},
                x_label="fraction of notes on beats that are chord tones",
                reference=("random pitch class", 3 / 12),
            ),
            "Solos generated over test chords by two models of equal size, without the first chord and the last two, "
            "which are the same in all pieces. Training solos have a chord tone on every beat.",
        )
        plot_solos(run, chords, generated)
        run.figure(
            "sensitivity to chords",
            heatmap(
                sensitivity,
                row_labels=[str(beat + 1) for beat in range(len(sensitivity))],
                column_labels=[str(bar + 2) for bar in range(sensitivity.shape[1])],
                x_label="exchanged chord",
                y_label="beat",
            ),
            "Total variation of the distribution of the note on each beat when one chord is exchanged for that of "
            "another piece. Each chord affects its own two beats; the model has learned this alignment.",
        )


@dataclass(frozen=True)
class Sample(NoteSample):
    chords: Text = ""  # chord symbols, such as "C Am F G C"; random progressions in C major by default

    def write(self, models: ModelCollection[Transformer | ChordAblation]) -> Iterator[str]:
        """Solos of four notes per chord, one line per chord."""
        model = models.model("with_chords")
        assert isinstance(model, Transformer)
        chords = self.progressions(max_chords=model.window // NOTES)
        source = (chords + 1).to(next(model.parameters()).device)
        start = torch.full_like(source[:, :1], BEGIN)
        tokens = generate(model.condition_on(source), start, self.sampler(BEGIN + 1), NOTES * chords.shape[1])
        notes = tokens.cpu() - BEGIN - 1 + LOWEST
        return format_pieces([format_solo(*solo) for solo in zip(chords, notes, strict=True)])

    def progressions(self, max_chords: int) -> Int[Tensor, "count bars"]:
        """The given chords for every sample, or random progressions."""
        if not self.chords:
            return sample_progressions(torch.zeros(self.num_samples).long(), max_chords, torch.default_generator)
        names = self.chords.split()
        if not 1 <= len(names) <= max_chords:
            raise DataError(f"chords must have 1 to {max_chords} names, as many as in training; got {self.chords!r}")
        return torch.tensor([parse_chord(name) for name in names]).expand(self.num_samples, -1)


def format_solo(chords: Int[Tensor, " bars"], notes: Int[Tensor, " time"]) -> list[str]:
    """The notes over each chord."""
    return [
        f"{chord_name(chord):<3} {' '.join(map(pitch_name, bar))}"
        for chord, bar in zip(chords.tolist(), notes.view(-1, NOTES).tolist(), strict=True)
    ]


@torch.no_grad()
def chord_sensitivity(
    model: Transformer, chords: Int[Tensor, "count bars"], solos: Int[Tensor, "count time_and_one"]
) -> Float[Tensor, "beats free"]:
    """Mean of ½ Σ_x |p(x | chords) − p(x | one chord exchanged)| at each beat, for each variable chord."""
    probabilities = model(chords, solos[:, :-1]).softmax(-1)
    sensitivity = []
    for bar in range(chords.shape[1])[FREE]:
        other = chords.clone()
        other[:, bar] = chords[:, bar].roll(1)
        distance = (model(other, solos[:, :-1]).softmax(-1) - probabilities).abs().sum(-1) / 2
        sensitivity.append(distance[other[:, bar] != chords[:, bar]].mean(0))
    return torch.stack(sensitivity, 1)[is_on_beat(probabilities.shape[1])].cpu()


def as_tokens(solos: Solos) -> tuple[Int[Tensor, "count bars"], Int[Tensor, "count time_and_one"]]:
    """Chords as tokens from 1, and notes as tokens from 2 after the start token."""
    return solos.chords + 1, nn.functional.pad(solos.notes - LOWEST + 2, (1, 0), value=BEGIN)


def plot_solos(run: Run, chords: Int[Tensor, " bars"], generated: Mapping[str, Int[Tensor, " time"]]) -> None:
    pitches = torch.arange(LOWEST, HIGHEST + 1)
    is_chord_tone = chord_tones(chords)[:, pitches % 12].repeat_interleave(NOTES, 0).T
    shading = torch.where(is_chord_tone, 1.0, torch.nan)  # NaN is transparent
    time = torch.arange(is_chord_tone.shape[1])
    beat = is_on_beat(len(time))
    figure, axes = subplots(len(generated), 1, size=(9.0, 2.7 * len(generated)))
    for ax, (name, notes) in zip(axes[:, 0], generated.items(), strict=True):
        ax.imshow(
            shading.numpy(),
            extent=(-0.5, len(time) - 0.5, LOWEST - 0.5, HIGHEST + 0.5),
            origin="lower",
            aspect="auto",
            cmap="Greys",
            vmin=0,
            vmax=2,
            alpha=0.4,
        )
        ax.plot(time, notes, color=PALETTE[0], linewidth=0.8, alpha=0.6)
        ax.scatter(time[beat], notes[beat], s=26, color=PALETTE[0], zorder=3, label="on the beat")
        ax.scatter(time[~beat], notes[~beat], s=9, color=PALETTE[1], zorder=3, label="between beats")
        ax.set_xticks(range(0, len(time), NOTES), [chord_name(chord) for chord in chords.tolist()])
        ax.set_title(NAMES[name], fontsize=9, loc="left")
        ax.set(ylabel="pitch")
        ax.grid(visible=False)
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    run.figure("solos", figure, "A solo of each model over the same test chords; shaded: chord tones.")


def chord_ablation_programs(model: ChordAblation, trained: TrainedRun) -> Programs:
    """What `parnassus export` writes: logits that do not depend on the chords."""
    (program,) = transformer_programs(model.model, trained).values()

    def logits(source: Tensor, target: Tensor) -> Tensor:
        found: Tensor = model.model(torch.ones_like(source), target)
        return found

    return {"logits": replace(program, function=logits)}


PROGRAMS = {ChordAblation: chord_ablation_programs}
