"""The Music Transformer learns chorales and continues them from their first bars (book sec. 10.1.2).

Bach's chorales, downloaded once: parnassus run music_transformer_on_chorales --data jsb --every 4
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.music_transformer import music_transformer
from parnassus.data import DataError, Split, jsb_chorales
from parnassus.music.form import modulating_pieces
from parnassus.music.voices import SILENCE, VoiceTokens, transposed
from parnassus.optim import Adam
from parnassus.report import PALETTE, subplots
from parnassus.text.choosing import chooser
from parnassus.text.generation import written
from parnassus.train import Run, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-9", "B10.1.2-4", "B10.1.2-15")
expected = {
    "nll_a_step": at_most(1.0, "−log p of a step of unseen pieces, all voices together, in nats"),
    "train_nll_a_step": reported("the same on pieces learned from"),
    "unigram_nll_a_step": reported("the same when a note's chance is only how often it sounds in its voice"),
    "voices": reported("notes that sound at a step"),
}
profiles = {
    "smoke": {"steps": 4, "pieces": 32, "batch": 4, "width": 16, "depth": 1},
    "gpu": {
        "data": "jsb", "every": 4, "steps": 3_000, "batch": 32, "width": 256, "heads": 8, "depth": 6, "dropout": 0.3,
        "lr": 5e-4,
    },
}  # fmt: skip

REACH = 6
"""Semitones by which pieces are moved up or down at most while training."""


class Chorister(nn.Module):
    """A Music Transformer with the voices it knows; 0 begins a piece, and fills it up behind its end."""

    def __init__(self, tokens: VoiceTokens, window: int, *, width: int, heads: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.tokens = tokens
        self.model = music_transformer(
            tokens.vocabulary, window, width=width, heads=heads, depth=depth, dropout=dropout
        )

    def nll(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, "batch time"]:
        """−log p of each note given all before it; 0 for filler."""
        return self.model.nll(tokens).masked_fill(tokens[:, 1:] == 0, 0.0)

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        return self.nll(tokens).sum() / (tokens[:, 1:] != 0).sum()


@dataclass(frozen=True)
class Experiment:
    data: Literal["form", "jsb"] = "form"  # generated melodies, or Bach's chorales in four voices
    every: int = 1  # take every so manieth step; 4 of the chorales' sixteenths are a quarter
    pieces: int = 2_000  # melodies to learn from, where they are generated
    steps: int = 400  # gradient steps
    batch: int = 16  # pieces a step
    width: int = 64  # numbers for each note, in every layer
    heads: int = 4  # of attention, side by side
    depth: int = 2  # layers
    dropout: float = 0.0  # share of numbers dropped in training
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self, lowest: int, highest: int, window: int) -> Chorister:
        return Chorister(
            VoiceTokens(lowest, highest),
            window,
            width=self.width,
            heads=self.heads,
            depth=self.depth,
            dropout=self.dropout,
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = self.split(run.seed)
        voices = train[0].shape[1]
        range_ = VoiceTokens.fit([transposed(piece, step) for piece in train + test for step in (-REACH, REACH)])
        rows, unseen = (filled([range_.encode(piece) for piece in part]).to(run.device) for part in (train, test))
        window = max(rows.shape[1], unseen.shape[1])

        singer = run.build(self.model, lowest=range_.lowest, highest=range_.highest, window=window)
        singer, optimizer = run.prepare(singer, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, singer, optimizer, Split(rows).batches(self.batch, self.steps).map(moved)):
            warming.step()
            run.log(step, loss=loss)

        singer.eval()
        self.continue_pieces(run, singer, test, voices)
        return {
            "nll_a_step": cost_of_a_step(singer, unseen, voices),
            "train_nll_a_step": cost_of_a_step(singer, rows[: len(unseen)], voices),
            "unigram_nll_a_step": unigram_cost(rows, unseen, voices, range_.vocabulary),
            "voices": float(voices),
        }

    def split(self, seed: int) -> tuple[list[Tensor], list[Tensor]]:
        """Pieces to learn from and unseen ones, as pitches of steps and voices."""
        if self.every < 1:
            raise ValueError(f"every must be at least 1; got every={self.every}")
        if self.data == "jsb":
            chorales = jsb_chorales()
            parts = chorales.train + chorales.valid, chorales.test
        else:
            melodies = modulating_pieces(self.pieces + self.pieces // 8, seed=seed)[0][..., None]
            parts = list(melodies[: self.pieces]), list(melodies[self.pieces :])
        train, test = ([piece[:: self.every] for piece in part] for part in parts)
        if not train or not test:
            raise DataError(f"there must be pieces to learn from and to test on; got {len(train)} and {len(test)}.")
        return train, test

    @torch.no_grad()
    def continue_pieces(self, run: Run, singer: Chorister, test: list[Tensor], voices: int) -> None:
        """Give the first half of unseen pieces and write the second."""
        torch.manual_seed(run.seed)
        device = next(singer.parameters()).device
        shown: dict[str, tuple[Tensor, int]] = {}
        for number, piece in enumerate(test[:2]):
            cut = len(piece) // 2
            prompt = singer.tokens.encode(piece[:cut]).to(device)[None]
            after = written(singer.model, prompt, chooser(temperature=0.9), (len(piece) - cut) * voices)[0].cpu()
            shown[f"piece {number + 1}"] = piece, cut
            shown[f"piece {number + 1}, continued"] = torch.cat([piece[:cut], singer.tokens.decode(after, voices)]), cut
        run.figure(
            "continued",
            piano_rolls(shown),
            "Two unseen pieces, and what the model wrote after their first halves; a colour is a voice.",
        )


def filled(pieces: list[Int[Tensor, " _time"]]) -> Int[Tensor, "count longest"]:
    """Pieces as rows of one length, the shorter ones followed by 0."""
    return nn.utils.rnn.pad_sequence(pieces, batch_first=True)


def moved(rows: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """Each piece higher or lower by up to six semitones; silence and filler stay."""
    by = torch.randint(-REACH, REACH + 1, (len(rows), 1), device=rows.device)
    return torch.where(rows > 1, rows + by, rows)


@torch.no_grad()
def cost_of_a_step(singer: Chorister, rows: Int[Tensor, "count time"], voices: int) -> float:
    """Nats a step: the cost of all notes over the number of steps of all pieces."""
    total = sum(float(singer.nll(part).sum()) for part in rows.split(16))
    return total * voices / int((rows[:, 1:] != 0).sum())


def unigram_cost(train: Tensor, test: Tensor, voices: int, vocabulary: int) -> float:
    """Nats a step when all that is known of a note is how often it sounds in its voice, with a count added."""
    total = 0.0
    for voice in range(voices):
        counts = torch.bincount(train[:, 1 + voice :: voices].flatten(), minlength=vocabulary).double()
        counts[0] = 0.0
        chance = (counts + 1) / (counts + 1).sum()
        heard = test[:, 1 + voice :: voices].flatten()
        total -= float(chance[heard[heard != 0]].log().sum())
    return total * voices / int((test[:, 1:] != 0).sum())


def piano_rolls(pieces: dict[str, tuple[Tensor, int]]) -> "Figure":
    """Pitches over time, a colour for each voice, a line where the model took over."""
    figure, axes = subplots(len(pieces), 1, size=(9.0, 1.9 * len(pieces)))
    for ax, (name, (piece, cut)) in zip(axes[:, 0], pieces.items(), strict=True):
        for voice in range(piece.shape[1]):
            heard = piece[:, voice] != SILENCE
            steps = torch.arange(len(piece))[heard]
            ax.scatter(steps.numpy(), piece[heard, voice].numpy(), s=7, marker="s", color=PALETTE[voice])
        ax.axvline(cut - 0.5, color="#888888", linewidth=0.8)
        ax.set_title(name, fontsize=9, loc="left")
        ax.set(ylabel="pitch")
    axes[-1, 0].set_xlabel("step")
    return figure
