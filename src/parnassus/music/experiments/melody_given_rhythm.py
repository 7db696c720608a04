"""Melody generation for a given rhythm, against a model without rhythm (book sec. 10.1.2).

Melodies for your own rhythm, in eighths: parnassus sample last --rhythm "2 2 4 3 1 4"
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.attention.commands.programs import inner_programs
from parnassus.attention.models.gpt import LanguageModel, gpt
from parnassus.data import DataError, Split
from parnassus.music.commands.model_training import train_models
from parnassus.music.commands.sample_notes import NoteSample, format_pieces
from parnassus.music.note_names import pitch_name
from parnassus.music.rhythm import (
    CHORD,
    EIGHTHS,
    FIRST_PITCH,
    STRONG,
    VOCABULARY,
    bar_positions,
    generate_melodies,
    generate_melody,
    interleave_tokens,
    is_strong_beat,
    melody_nll,
    rhythm_tokens,
    sample_rhythms,
    strong_chord_tone_fraction,
)
from parnassus.music.solo import LOWEST
from parnassus.report import PALETTE, bar_chart, subplots
from parnassus.text.generation import generate
from parnassus.text.sampling import token_sampler
from parnassus.train import ModelCollection, Positive, Run, Text, at_least, at_most, no_band

covers = ("B10.1.2-6",)
expected = {
    "chord_tones/with_rhythm": at_least(
        0.9, "fraction of the notes on strong beats that belong to the tonic chord, model with rhythm"
    ),
    "chord_tones/without_rhythm": at_most(
        0.8, "fraction of the notes on strong beats that belong to the tonic chord, model without rhythm"
    ),
    "nll/with_rhythm": at_most(1.3, "mean −log p of a pitch of test melodies, in nats, model with rhythm"),
    "nll/without_rhythm": no_band("mean −log p of a pitch of test melodies, in nats, model without rhythm"),
    "nll/optimal": no_band("mean −log p of a pitch under the generating distribution: the minimum of the loss"),
}
profiles = {"smoke": {"steps": 4, "num_examples": 64, "num_test": 16, "width": 16}}

NAMES = {"with_rhythm": "with rhythm", "without_rhythm": "without rhythm"}


class PitchLanguageModel(nn.Module):
    """A language model of the pitches only: the start token and every second token after it."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def loss(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        return self.model.loss(tokens[:, ::2])


@dataclass(frozen=True)
class Experiment:
    num_notes: Positive[int] = 16  # notes per melody
    num_examples: Positive[int] = 20_000  # training melodies
    num_test: Positive[int] = 300  # test melodies
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 32  # melodies per gradient step
    width: Positive[int] = 64  # channels
    num_layers: Positive[int] = 2  # transformer blocks
    learning_rate: Positive[float] = 3e-3  # peak learning rate of the 1cycle schedule

    def model(self) -> ModelCollection[LanguageModel | PitchLanguageModel]:
        build = partial(gpt, VOCABULARY, 2 * self.num_notes + 1, width=self.width, depth=self.num_layers)
        return ModelCollection({"with_rhythm": build(), "without_rhythm": PitchLanguageModel(build())})

    def __call__(self, run: Run) -> dict[str, float]:
        train = generate_melodies(self.num_examples, notes=self.num_notes, seed=2 * run.seed)
        test = generate_melodies(self.num_test, notes=self.num_notes, seed=2 * run.seed + 1)
        tokens = interleave_tokens(rhythm_tokens(train.durations), train.pitches).to(run.device)
        batches = Split(tokens).batches(self.batch_size, self.steps)
        models = train_models(run, run.build(self.model), batches, learning_rate=self.learning_rate)

        rhythm = rhythm_tokens(test.durations).to(run.device)
        test_tokens = interleave_tokens(rhythm, test.pitches.to(run.device))
        full, pitch_only = models.model("with_rhythm").eval(), models.model("without_rhythm").eval()
        if not isinstance(full, LanguageModel) or not isinstance(pitch_only, PitchLanguageModel):
            raise TypeError("the models must be a LanguageModel and a PitchLanguageModel")
        with torch.no_grad():
            nats = {
                "with_rhythm": float(full.nll(test_tokens)[:, 1::2].mean()),  # of pitches only
                "without_rhythm": float(pitch_only.model.nll(test_tokens[:, ::2]).mean()),
                "optimal": float(melody_nll(test).mean()),
            }
        pitch_tokens = generate(pitch_only.model, test_tokens[:, :1], token_sampler(), self.num_notes).clamp(
            min=FIRST_PITCH
        )
        generated = {
            "with_rhythm": generate_melody(full, rhythm, token_sampler()).cpu(),
            "without_rhythm": pitch_tokens.cpu() - FIRST_PITCH + LOWEST,
        }
        fractions = {name: strong_chord_tone_fraction(pitches, test.durations) for name, pitches in generated.items()}
        run.figure(
            "chord tones",
            bar_chart(
                {NAMES[name]: fraction for name, fraction in fractions.items()},
                x_label="fraction of the notes on strong beats that belong to the tonic chord",
                reference=("any note of the scale", 3 / 7),
            ),
            "Melodies generated for test rhythms. In the training melodies every note on a strong beat is a chord "
            "tone; without the rhythm the positions of strong beats are unknown.",
        )
        plot_melodies(run, test.durations[0], {name: pitches[0] for name, pitches in generated.items()})
        return {
            **{f"chord_tones/{name}": fraction for name, fraction in fractions.items()},
            **{f"nll/{name}": nll for name, nll in nats.items()},
        }


@dataclass(frozen=True)
class Sample(NoteSample):
    rhythm: Text = ""  # durations of the notes in eighths, 1 to 4 each; random rhythms by default

    def write(self, models: ModelCollection[LanguageModel | PitchLanguageModel]) -> Iterator[str]:
        """Melodies for the rhythm, each note with its duration in eighths."""
        model = models.model("with_rhythm")
        assert isinstance(model, LanguageModel)
        durations = self.durations(max_notes=(model.window - 1) // 2)
        tokens = rhythm_tokens(durations).to(next(model.parameters()).device)
        pitches = generate_melody(model, tokens, self.sampler()).cpu()
        return format_pieces([[format_melody(*melody)] for melody in zip(pitches, durations, strict=True)])

    def durations(self, max_notes: int) -> Int[Tensor, "count notes"]:
        """The given rhythm for every sample, or random rhythms."""
        if not self.rhythm:
            return sample_rhythms(self.num_samples, max_notes, torch.default_generator)
        parts = self.rhythm.split()
        if not all(part.isdecimal() for part in parts) or not 1 <= len(parts) <= max_notes:
            raise DataError(f"rhythm must have 1 to {max_notes} durations in eighths; got {self.rhythm!r}")
        return torch.tensor([int(part) for part in parts]).expand(self.num_samples, -1)


def format_melody(pitches: Int[Tensor, " notes"], durations: Int[Tensor, " notes"]) -> str:
    """Notes with their durations in eighths, such as "C5:2 E5:2 | G5:4", with a bar line before each new bar."""
    first = (bar_positions(durations[None])[0] == 0).tolist()
    notes = [
        f"{pitch_name(pitch)}:{length}" for pitch, length in zip(pitches.tolist(), durations.tolist(), strict=True)
    ]
    return " ".join(
        f"| {note}" if new and index else note for index, (note, new) in enumerate(zip(notes, first, strict=True))
    )


def plot_melodies(run: Run, durations: Int[Tensor, " notes"], melodies: Mapping[str, Int[Tensor, " notes"]]) -> None:
    begin = durations.cumsum(0) - durations
    on_beat = is_strong_beat(durations[None])[0]
    figure, axes = subplots(len(melodies), 1, size=(9.0, 2.2 * len(melodies)))
    for ax, (name, pitches) in zip(axes[:, 0], melodies.items(), strict=True):
        fits = (pitches[:, None] % 12 == torch.tensor(CHORD)).any(1)
        kinds = {
            "strong beat, chord tone": (on_beat & fits, PALETTE[0]),
            "strong beat, not a chord tone": (on_beat & ~fits, PALETTE[1]),
            "weak beat": (~on_beat, "grey"),
        }
        for label, (selected, colour) in kinds.items():
            ends = (begin + durations - 0.15)[selected]
            ax.hlines(pitches[selected], begin[selected], ends, color=colour, linewidth=4, label=label)
        for beat in range(0, int(begin[-1] + durations[-1]) + 1, STRONG):
            ax.axvline(beat - 0.07, color="grey", linewidth=0.8 if beat % EIGHTHS == 0 else 0.3)
        ax.set_title(NAMES[name], fontsize=9, loc="left")
        ax.set(ylabel="pitch")
        ax.grid(visible=False, axis="x")
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)
    axes[-1, 0].set_xlabel("time (eighths); lines: strong beats")
    run.figure("melodies", figure, "A test rhythm, and the pitches that each model generates for it.")


PROGRAMS = {PitchLanguageModel: inner_programs}  # what `parnassus export` writes
