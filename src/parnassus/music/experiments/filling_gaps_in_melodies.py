"""A bar of a melody is lost and found again from both sides, beside a model that reads forwards (book sec. 10.1.2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from parnassus.attention.bert import MaskedLanguageModel
from parnassus.attention.encoder import encoder
from parnassus.attention.gpt import LanguageModel, gpt
from parnassus.data import Split
from parnassus.music.experiments.finding_home import learn
from parnassus.music.form import BAR, HIGHEST, LOWEST, PLAN, modulating_pieces, sections
from parnassus.music.inpainting import fill_in_turn, vary
from parnassus.music.keys import Key
from parnassus.report import PALETTE, curves, subplots
from parnassus.text.choosing import chooser, greedy
from parnassus.text.generation import written
from parnassus.train import Run, SideBySide, at_least, at_most, between, reported

covers = ("B10.1.2-5",)
expected = {
    "in_key/both_sides": at_least(0.9, "share of found notes of the section's scale, any bar lost"),
    "in_key/forwards": reported("the same by a model that hears only what comes before the gap"),
    "in_key/first_bar/both_sides": at_least(0.85, "the same where the first bar is lost"),
    "in_key/first_bar/forwards": at_most(
        0.8, "the same forwards: nothing comes before, and the key is anybody's guess"
    ),
    "right/both_sides": at_least(
        0.45, "share of notes found as they were; octave and figure are drawn by lot but in cadences"
    ),
    "right/forwards": reported("the same forwards"),
    "changed": between(0.2, 0.95, "share of varied notes that are not as before"),
    "varied_in_key": at_least(0.85, "share of varied notes of the scale"),
}
profiles = {"smoke": {"steps": 4, "pieces": 64, "test": 16, "width": 16}}

FIRST = MaskedLanguageModel.FIRST
"""Token of the lowest note; 0, filler, begins a piece for the model that reads forwards, 1 is the mask."""
NAMES = {"both_sides": "from both sides", "forwards": "forwards"}


@dataclass(frozen=True)
class Experiment:
    bars: int = 2  # bars in each of the four sections; the last one is a cadence
    pieces: int = 20_000  # pieces to learn from
    test: int = 100  # unseen pieces
    hidden: float = 0.3  # share of the notes that are hidden in training
    steps: int = 400  # gradient steps
    batch: int = 32  # pieces a step
    width: int = 64  # numbers for each note
    depth: int = 2  # blocks
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self) -> SideBySide[MaskedLanguageModel | LanguageModel]:
        notes, places = FIRST + HIGHEST - LOWEST + 1, 1 + len(PLAN) * self.bars * BAR
        two_sided = encoder(notes, places, width=self.width, depth=self.depth)
        causal = gpt(notes, places, width=self.width, depth=self.depth)
        return SideBySide({"both_sides": MaskedLanguageModel(two_sided, share=self.hidden), "forwards": causal})

    def __call__(self, run: Run) -> dict[str, float]:
        train, _ = modulating_pieces(self.pieces, bars=self.bars, seed=2 * run.seed)
        test, home = modulating_pieces(self.test, bars=self.bars, seed=2 * run.seed + 1)
        batches = Split(as_tokens(train).to(run.device)).batches(self.batch, self.steps)
        models = learn(run, run.build(self.model), batches, steps=self.steps, lr=self.lr)

        tokens, masked, forwards = as_tokens(test).to(run.device), models.one("both_sides"), models.one("forwards")
        if not isinstance(masked, MaskedLanguageModel) or not isinstance(forwards, LanguageModel):
            raise TypeError("the models must be a masked one and one that reads forwards")
        masked.eval()
        found = {"both_sides": test.clone(), "forwards": test.clone()}
        for start in range(0, test.shape[1], BAR):  # lose one bar at a time
            bar = slice(start, start + BAR)
            gap = tokens.clone()
            gap[:, 1 + start : 1 + start + BAR] = masked.MASK
            found["both_sides"][:, bar] = as_pitches(fill_in_turn(masked, gap, greedy))[:, bar]
            after = written(forwards.eval(), tokens[:, : 1 + start], greedy, BAR)
            found["forwards"][:, bar] = as_pitches(nn.functional.pad(after, (1, 0)))
        new = torch.arange(tokens.shape[1]) - 1
        again = ((new // BAR) % self.bars == 0) & (new >= BAR)  # of each section but the first, the first bar
        varied = as_pitches(vary(masked, tokens, again.to(run.device), chooser()))
        free = [bar for bar in range(len(PLAN) * self.bars) if (bar + 1) % self.bars]
        show_bars(run, {name: (notes == test, in_scale(notes, home)) for name, notes in found.items()}, free)
        show_pieces(run, {"the piece": test[0], "a variation": varied[0]}, again[1:], home=int(home[0]))
        return {
            **{f"in_key/{name}": share(in_scale(notes, home)) for name, notes in found.items()},
            **{f"in_key/first_bar/{name}": share(in_scale(notes, home)[:, :BAR]) for name, notes in found.items()},
            **{f"right/{name}": share(notes == test) for name, notes in found.items()},
            "changed": share((varied != test)[:, again[1:]]),
            "varied_in_key": share(in_scale(varied, home)[:, again[1:]]),
        }


def as_tokens(pieces: Int[Tensor, "count time"]) -> Int[Tensor, "count time_and_one"]:
    """Pitches as tokens after the one that begins a piece."""
    return nn.functional.pad(pieces - LOWEST + FIRST, (1, 0))


def as_pitches(tokens: Int[Tensor, "count time_and_one"]) -> Int[Tensor, "count time"]:
    return tokens[:, 1:].cpu() - FIRST + LOWEST


def share(which: Bool[Tensor, "..."]) -> float:
    return float(which.double().mean())


def in_scale(pieces: Int[Tensor, "count time"], home: Int[Tensor, " count"]) -> Bool[Tensor, "count time"]:
    """Which notes belong to the key of their section."""
    scales = torch.tensor([[key.scale for key in sections(Key(tonic))] for tonic in home.tolist()])
    notes = pieces.view(len(pieces), len(PLAN), -1)
    return (notes[..., None] % 12 == scales[:, :, None]).any(-1).flatten(1)


def show_bars(run: Run, found: dict[str, tuple[Tensor, Tensor]], free: list[int]) -> None:
    shares = {}
    for name, (right, fits) in found.items():
        for what, which in {"in key": fits, "as it was": right}.items():
            by_bar = which.double().view(len(which), -1, BAR).mean((0, 2))
            shares[f"{NAMES[name]}: {what}"] = ([bar + 1 for bar in free], by_bar[free])
    run.figure(
        "by_bar",
        curves(shares, x_label="bar that was lost", y_label="share of its notes"),
        "Each bar of unseen pieces was lost in turn; cadences, which both models know, are left out. Of an early bar "
        "the future knows the key and the figures, the past does not. Octave and figure of a bar are drawn by lot, so "
        "nobody can find all notes as they were.",
    )


def show_pieces(run: Run, pieces: dict[str, Tensor], again: Tensor, *, home: int) -> None:
    figure, axes = subplots(len(pieces), 1, size=(9.0, 1.9 * len(pieces)))
    for ax, (name, notes) in zip(axes[:, 0], pieces.items(), strict=True):
        time = torch.arange(len(notes))
        ax.scatter(time[~again], notes[~again], s=14, color=PALETTE[0], label="kept")
        ax.scatter(time[again], notes[again], s=14, color=PALETTE[1], label="forgotten and found anew")
        for edge in range(0, len(notes) + 1, len(notes) // len(PLAN)):
            ax.axvline(edge - 0.5, color="grey", linewidth=0.6)
        ax.set_title(name, fontsize=9, loc="left")
        ax.set(ylabel="pitch", ylim=(LOWEST - 2, HIGHEST + 2))
        ax.grid(visible=False, axis="x")
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2)
    keys = " → ".join(str(key) for key in sections(Key(home)))
    run.figure("variation", figure, f"An unseen piece, {keys}, and a variation of it: the cadences were kept.")
