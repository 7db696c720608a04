"""Chords go into the encoder, a solo comes out of the decoder, note by note (book sec. 10.1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.seq2seq import Transformer, Translating, seq2seq
from parnassus.data import Split
from parnassus.music.solo import (
    CADENCE,
    CHORDS,
    HIGHEST,
    LOWEST,
    NOTES,
    Solos,
    chord_name,
    chord_tone_share,
    chord_tones,
    on_the_beat,
    solo_nats,
    solos_over_chords,
)
from parnassus.optim import Adam
from parnassus.report import PALETTE, bars, heatmap, subplots
from parnassus.text.choosing import chooser
from parnassus.text.generation import written
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

covers = ("B10.1.2-7",)
expected = {
    "chord_tones/hears_chords": at_least(
        0.75, "share of its notes on beats that belong to the chord, free chords only"
    ),
    "chord_tones/hears_none": at_most(0.6, "the same for a decoder whose encoder is given no chords"),
    "chord_tones/scale": reported("the same for notes of the right scale drawn with equal chances: 3 of 7"),
    "nats/hears_chords": at_most(1.1, "−log p of a note of unseen solos"),
    "nats/hears_none": reported("the same without the chords"),
    "nats/law": reported("the same by the law that made the solos: what no model can fall below"),
    "moved/own_chord": at_least(0.4, "how far p(note on a beat) moves, of 1, when the chord under it is another one"),
    "moved/other_chord": at_most(0.2, "the same when another chord of the piece is another one"),
}
profiles = {
    "smoke": {"steps": 4, "pieces": 64, "test": 16, "width": 16, "bars": 4},
    "gpu": {"steps": 6_000, "batch": 256, "keys": 12, "bars": 8, "depth": 2, "pieces": 100_000, "lr": 2e-3},
}

BEGIN = 1
"""The token before the first note, after the filler 0; the notes follow from 2 on."""
FREE, FREE_NOTES = slice(1, -len(CADENCE)), slice(NOTES, -NOTES * len(CADENCE))
"""The chords that differ between pieces, and the notes over them; all pieces begin with I and end with V, I."""
NAMES = {"hears_chords": "hears the chords", "hears_none": "hears no chords", "scale": "any note of the scale"}


class Unheard(nn.Module):
    """The same model with every chord replaced by one and the same token: it can only go by its own past."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def loss(self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m"]) -> Float[Tensor, ""]:
        return self.model.loss(torch.ones_like(source), target)

    def given(self, source: Int[Tensor, "batch n"]) -> Translating:
        return self.model.given(torch.ones_like(source))


@dataclass(frozen=True)
class Experiment:
    bars: int = 6  # chords of a piece, with four notes each
    keys: int = 1  # the tonic is one of so many pitch classes; 1 is C major alone
    pieces: int = 20_000  # pieces to learn from
    test: int = 200  # unseen pieces
    steps: int = 500  # gradient steps
    batch: int = 64  # pieces a step
    width: int = 64  # numbers for each chord and each note
    depth: int = 1  # blocks of the encoder, and of the decoder
    lr: float = 5e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self) -> SideBySide[Transformer | Unheard]:
        new = partial(
            seq2seq,
            (1 + CHORDS, 2 + HIGHEST - LOWEST + 1),
            NOTES * self.bars,
            width=self.width,
            heads=4,
            depth=self.depth,
            hidden=2 * self.width,
        )
        return SideBySide({"hears_chords": new(), "hears_none": Unheard(new())})

    def __call__(self, run: Run) -> dict[str, float]:
        if self.bars < 4 or self.test < 2:
            raise ValueError(f"need a free chord and pieces to exchange it; got bars={self.bars}, test={self.test}")
        train = solos_over_chords(self.pieces, bars=self.bars, keys=self.keys, seed=2 * run.seed)
        test = solos_over_chords(self.test, bars=self.bars, keys=self.keys, seed=2 * run.seed + 1)
        models = run.build(self.model)
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        batches = Split(*as_tokens(train)).to(run.device).pairs(self.batch, self.steps)
        for step, loss in descend(run, models, optimizer, batches):
            warming.step()
            run.log(step, loss=loss / len(models))

        chords, solos = (tokens.to(run.device) for tokens in as_tokens(test))
        in_scale = chord_tones(test.chords).double().mean() * 12 / 7  # all chords are of the scale's notes
        shares, nats, played = {"scale": float(in_scale)}, {"law": float(solo_nats(test).mean())}, {}
        with torch.no_grad():
            for name, model in models.every():
                nats[name] = float(model.eval().loss(chords, solos))
                tokens = written(model.given(chords), solos[:, :1], chooser(), NOTES * self.bars)
                played[name] = LOWEST + (tokens.cpu() - 2).clamp(min=0)
                shares[name] = chord_tone_share(played[name][:, FREE_NOTES], test.chords[:, FREE])
        hearing = models.one("hears_chords")
        if not isinstance(hearing, Transformer):
            raise TypeError(f"the model that hears chords must be a Transformer; got {type(hearing).__name__}")
        moved = listening(hearing, chords, solos)
        own = torch.eye(self.bars, dtype=torch.bool).repeat_interleave(NOTES // 2, 0)[:, FREE]
        self.show(run, test.chords[0], {name: notes[0] for name, notes in played.items()}, shares, moved)
        return {
            **{f"chord_tones/{name}": share for name, share in shares.items()},
            **{f"nats/{name}": cost for name, cost in nats.items()},
            "moved/own_chord": float(moved[own].mean()),
            "moved/other_chord": float(moved[~own].mean()),
        }

    def show(
        self, run: Run, chords: Tensor, played: Mapping[str, Tensor], shares: Mapping[str, float], moved: Tensor
    ) -> None:
        run.figure(
            "chord_tones",
            bars(
                {NAMES[name]: shares[name] for name in NAMES},
                x_label="share of the notes on beats that belong to the chord",
                reference=("any of the twelve", 3 / 12),
            ),
            "Solos that two decoders of the same shape wrote over unseen chords; the first chord and the last two, "
            "which are the same in every piece, are not counted. The solos they learned from have a note of the chord "
            "on every beat.",
        )
        show_solos(run, chords, played)
        run.figure(
            "listening_to_chords",
            heatmap(
                moved,
                row_labels=[str(beat + 1) for beat in range(len(moved))],
                column_labels=[str(bar + 2) for bar in range(moved.shape[1])],
                x_label="chord that was exchanged",
                y_label="beat",
            ),
            "One chord at a time was exchanged for that of another piece: how far the probabilities of the note on "
            "each beat moved (total variation). Each chord matters to its own two beats. Nobody told the decoder which "
            "chord sounds when: places are learned.",
        )


@torch.no_grad()
def listening(
    model: Transformer, chords: Int[Tensor, "count bars"], solos: Int[Tensor, "count time_and_one"]
) -> Float[Tensor, "beats free"]:
    """½ Σ_x |p(x | chords) − p(x | one chord exchanged)| at each beat, for each free chord: a mean over pieces."""
    law = model(chords, solos[:, :-1]).softmax(-1)
    moved = []
    for bar in range(chords.shape[1])[FREE]:
        other = chords.clone()
        other[:, bar] = chords[:, bar].roll(1)
        away = (model(other, solos[:, :-1]).softmax(-1) - law).abs().sum(-1) / 2
        moved.append(away[other[:, bar] != chords[:, bar]].mean(0))
    return torch.stack(moved, 1)[on_the_beat(law.shape[1])].cpu()


def as_tokens(solos: Solos) -> tuple[Int[Tensor, "count bars"], Int[Tensor, "count time_and_one"]]:
    """Chords from 1 on, and notes from 2 on after the token that begins a solo."""
    return solos.chords + 1, nn.functional.pad(solos.notes - LOWEST + 2, (1, 0), value=BEGIN)


def show_solos(run: Run, chords: Int[Tensor, " bars"], played: Mapping[str, Int[Tensor, " time"]]) -> None:
    pitches = torch.arange(LOWEST, HIGHEST + 1)
    sounding = chord_tones(chords)[:, pitches % 12].repeat_interleave(NOTES, 0).T
    shade = torch.where(sounding, 1.0, torch.nan)  # nothing is drawn where there is no number
    time = torch.arange(sounding.shape[1])
    beat = on_the_beat(len(time))
    figure, axes = subplots(len(played), 1, size=(9.0, 2.7 * len(played)))
    for ax, (name, notes) in zip(axes[:, 0], played.items(), strict=True):
        ax.imshow(
            shade.numpy(),
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
        ax.scatter(time[~beat], notes[~beat], s=9, color=PALETTE[1], zorder=3, label="between")
        ax.set_xticks(range(0, len(time), NOTES), [chord_name(chord) for chord in chords.tolist()])
        ax.set_title(NAMES[name], fontsize=9, loc="left")
        ax.set(ylabel="pitch")
        ax.grid(visible=False)
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    run.figure(
        "solos", figure, "A solo of each decoder over the same unseen chords; shaded are the notes of the chord."
    )
