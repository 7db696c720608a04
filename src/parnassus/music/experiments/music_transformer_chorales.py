"""Music Transformer on generated melodies or Bach's chorales (book sec. 10.1.2).

Bach's chorales, downloaded once: parnassus run music_transformer_chorales --data jsb --stride 4
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.models.music_transformer import music_transformer
from parnassus.data import DataError, Split, jsb_chorales
from parnassus.music.commands.sample_notes import NoteSample, format_pieces
from parnassus.music.form import BAR, generate_modulating_pieces
from parnassus.music.note_names import format_bars, pitch_name
from parnassus.music.voice_tokeniser import SILENCE, VoiceTokeniser, transpose
from parnassus.optim import Adam
from parnassus.report import PALETTE, subplots
from parnassus.text.generation import generate
from parnassus.text.sampling import token_sampler
from parnassus.train import Positive, Run, UnitInterval, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-9", "B10.1.2-4", "B10.1.2-15")
expected = {
    "nll_per_step": at_most(1.0, "mean −log p per time step of test pieces, summed over voices, in nats"),
    "train_nll_per_step": no_band("mean −log p per time step of training pieces, summed over voices, in nats"),
    "unigram_nll_per_step": no_band(
        "mean −log p per time step of test pieces under unigram frequencies of each voice, in nats"
    ),
    "voices": no_band("voices per time step"),
}
profiles = {
    "smoke": {"steps": 4, "num_examples": 32, "batch_size": 4, "width": 16, "num_layers": 1},
    "gpu": {
        "data": "jsb", "stride": 4, "steps": 3_000, "batch_size": 32, "width": 256, "num_heads": 8, "num_layers": 6,
        "dropout": 0.3, "learning_rate": 5e-4,
    },
}  # fmt: skip

MAX_TRANSPOSITION = 6
"""Largest transposition in semitones for data augmentation."""


class ChoraleModel(nn.Module):
    """A Music Transformer with its voice tokeniser and number of voices; token 0 is start and padding."""

    def __init__(
        self, tokeniser: VoiceTokeniser, voices: int, window: int, *, width: int, heads: int, depth: int, dropout: float
    ) -> None:
        super().__init__()
        self.tokeniser, self.voices = tokeniser, voices
        self.model = music_transformer(
            tokeniser.vocabulary, window, width=width, heads=heads, depth=depth, dropout=dropout
        )

    def nll(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, "batch time"]:
        """−log p of each note given all previous notes; 0 for padding."""
        return self.model.nll(tokens).masked_fill(tokens[:, 1:] == 0, 0.0)

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        return self.nll(tokens).sum() / (tokens[:, 1:] != 0).sum()


@dataclass(frozen=True)
class Experiment:
    data: Literal["form", "jsb"] = "form"  # generated melodies, or Bach's chorales in four voices
    stride: Positive[int] = 1  # keep every n-th time step; 4 sixteenths of the chorales are a quarter note
    num_examples: Positive[int] = 2_000  # training melodies, if generated
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 16  # pieces per gradient step
    width: Positive[int] = 64  # channels
    num_heads: Positive[int] = 4  # attention heads
    num_layers: Positive[int] = 2  # transformer blocks
    dropout: UnitInterval = 0.0  # dropout probability
    learning_rate: Positive[float] = 3e-3  # peak learning rate of the 1cycle schedule

    def model(self, lowest: int, highest: int, voices: int, window: int) -> ChoraleModel:
        return ChoraleModel(
            VoiceTokeniser(lowest, highest),
            voices,
            window,
            width=self.width,
            heads=self.num_heads,
            depth=self.num_layers,
            dropout=self.dropout,
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = self.split(run.seed)
        voices = train[0].shape[1]
        tokeniser = VoiceTokeniser.fit(
            [transpose(piece, step) for piece in train + test for step in (-MAX_TRANSPOSITION, MAX_TRANSPOSITION)]
        )
        rows, test_rows = (
            pad_pieces([tokeniser.encode(piece) for piece in part]).to(run.device) for part in (train, test)
        )
        window = max(rows.shape[1], test_rows.shape[1])

        facts = {"lowest": tokeniser.lowest, "highest": tokeniser.highest, "voices": voices, "window": window}
        model = run.build(self.model, **facts)
        model, optimizer, schedule = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, loss in descend(
            run, model, optimizer, Split(rows).batches(self.batch_size, self.steps).map(transpose_randomly)
        ):
            schedule.step()
            run.log(step, loss=loss)

        model.eval()
        self.continue_pieces(run, model, test, voices)
        return {
            "nll_per_step": nll_per_step(model, test_rows, voices),
            "train_nll_per_step": nll_per_step(model, rows[: len(test_rows)], voices),
            "unigram_nll_per_step": unigram_nll_per_step(rows, test_rows, voices, tokeniser.vocabulary),
            "voices": float(voices),
        }

    def split(self, seed: int) -> tuple[list[Tensor], list[Tensor]]:
        """Training and test pieces, as pitches by time step and voice."""
        if self.data == "jsb":
            chorales = jsb_chorales()
            parts = chorales.train + chorales.valid, chorales.test
        else:
            melodies = generate_modulating_pieces(self.num_examples + self.num_examples // 8, seed=seed)[0][..., None]
            parts = list(melodies[: self.num_examples]), list(melodies[self.num_examples :])
        train, test = ([piece[:: self.stride] for piece in part] for part in parts)
        if not train or not test:
            raise DataError(
                f"there must be at least one training and one test piece; got {len(train)} and {len(test)}."
            )
        return train, test

    @torch.no_grad()
    def continue_pieces(self, run: Run, model: ChoraleModel, test: list[Tensor], voices: int) -> None:
        """Continue test pieces from their first half."""
        torch.manual_seed(run.seed)
        device = next(model.parameters()).device
        pieces: dict[str, tuple[Tensor, int]] = {}
        for number, piece in enumerate(test[:2]):
            cut = len(piece) // 2
            prompt = model.tokeniser.encode(piece[:cut]).to(device)[None]
            after = generate(model.model, prompt, token_sampler(temperature=0.9), (len(piece) - cut) * voices)[0].cpu()
            pieces[f"piece {number + 1}"] = piece, cut
            pieces[f"piece {number + 1}, continued"] = (
                torch.cat([piece[:cut], model.tokeniser.decode(after, voices)]),
                cut,
            )
        run.figure(
            "continuations",
            plot_piano_rolls(pieces),
            "Two test pieces, and continuations of their first halves by the model; one colour per voice.",
        )


@dataclass(frozen=True)
class Sample(NoteSample):
    num_steps: Positive[int] = 64  # time steps per piece

    def write(self, model: ChoraleModel) -> Iterator[str]:
        """New pieces, one line per voice; a rest is “-”."""
        start = torch.zeros(self.num_samples, 1, dtype=torch.int64, device=next(model.parameters()).device)
        tokens = generate(model.model, start, self.sampler(1), self.num_steps * model.voices).cpu()
        pieces = [model.tokeniser.decode(row, model.voices) for row in tokens]
        return format_pieces([[format_voice(voice) for voice in piece.T] for piece in pieces])


def format_voice(pitches: Int[Tensor, " time"]) -> str:
    return format_bars([pitch_name(pitch) if pitch != SILENCE else "-" for pitch in pitches.tolist()], BAR)


def pad_pieces(pieces: list[Int[Tensor, " _time"]]) -> Int[Tensor, "count longest"]:
    """Pieces as rows of equal length, padded with 0."""
    return nn.utils.rnn.pad_sequence(pieces, batch_first=True)


def transpose_randomly(rows: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """Transpose each piece by up to ±6 semitones; silence and padding are unchanged."""
    semitones = torch.randint(-MAX_TRANSPOSITION, MAX_TRANSPOSITION + 1, (len(rows), 1), device=rows.device)
    return torch.where(rows > 1, rows + semitones, rows)


@torch.no_grad()
def nll_per_step(model: ChoraleModel, rows: Int[Tensor, "count time"], voices: int) -> float:
    """Negative log-likelihood per time step, in nats."""
    total = sum(float(model.nll(part).sum()) for part in rows.split(16))
    return total * voices / int((rows[:, 1:] != 0).sum())


def unigram_nll_per_step(train: Tensor, test: Tensor, voices: int, vocabulary: int) -> float:
    """Negative log-likelihood per time step under add-one unigram frequencies of each voice, in nats."""
    total = 0.0
    for voice in range(voices):
        counts = torch.bincount(train[:, 1 + voice :: voices].flatten(), minlength=vocabulary).double()
        counts[0] = 0.0
        probability = (counts + 1) / (counts + 1).sum()
        notes = test[:, 1 + voice :: voices].flatten()
        total -= float(probability[notes[notes != 0]].log().sum())
    return total * voices / int((test[:, 1:] != 0).sum())


def plot_piano_rolls(pieces: dict[str, tuple[Tensor, int]]) -> "Figure":
    """Pitches over time, one colour per voice, with a line where the continuation starts."""
    figure, axes = subplots(len(pieces), 1, size=(9.0, 1.9 * len(pieces)))
    for ax, (name, (piece, cut)) in zip(axes[:, 0], pieces.items(), strict=True):
        for voice in range(piece.shape[1]):
            is_note = piece[:, voice] != SILENCE
            steps = torch.arange(len(piece))[is_note]
            ax.scatter(steps.numpy(), piece[is_note, voice].numpy(), s=7, marker="s", color=PALETTE[voice])
        ax.axvline(cut - 0.5, color="#888888", linewidth=0.8)
        ax.set_title(name, fontsize=9, loc="left")
        ax.set(ylabel="pitch")
    axes[-1, 0].set_xlabel("step")
    return figure
