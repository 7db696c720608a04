"""Does a model return to the home key after two modulations? Attention beside recurrence (book sec. 10.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.gpt import LanguageModel, gpt
from parnassus.attention.maps import attention_maps
from parnassus.attention.music_transformer import music_transformer
from parnassus.data import Batches, Split
from parnassus.music.form import BAR, HIGHEST, LOWEST, PLAN, form_entropy, modulating_pieces, sections
from parnassus.music.keys import KEYS, Key, key_scores
from parnassus.optim import Adam
from parnassus.report import PALETTE, bars, curves, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.text.choosing import chooser
from parnassus.text.generation import written
from parnassus.text.lstm import RecurrentLanguageModel
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Model = TypeVar("Model", bound=nn.Module)

covers = ("B10.1-10", "B10.1.2-4", "B10.1.2-15")
expected = {
    "home/lstm": reported("share of continuations in the home key, by a network with a recurrent memory"),
    "home/places": at_least(0.9, "the same by attention with a learned vector for each place"),
    "home/distances": at_least(0.9, "the same by attention with a learned vector for each distance"),
    "home/true": at_least(0.9, "the same for the pieces themselves: how well keys can be told from 16 notes"),
    "excess/lstm": reported("nats that a piece costs above its entropy"),
    "excess/places": at_most(11.0, "the same with places"),
    "excess/distances": at_most(11.0, "the same with distances"),
    "entropy": reported("entropy of a piece, in nats: what no model can fall below"),
}
profiles = {"smoke": {"steps": 4, "pieces": 64, "test": 16, "width": 16}}

START = 0
"""The token before the first note; the notes follow from 1 on."""
NAMES = {"lstm": "recurrent (LSTM)", "places": "attention, places", "distances": "attention, distances"}


@dataclass(frozen=True)
class Experiment:
    bars: int = 4  # bars in each of the four sections
    pieces: int = 20_000  # pieces to learn from
    test: int = 300  # unseen pieces
    steps: int = 600  # gradient steps
    batch: int = 32  # pieces a step
    width: int = 64  # numbers for each note, in every layer of every model
    depth: int = 2  # layers
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self) -> SideBySide[LanguageModel | RecurrentLanguageModel]:
        notes, window = HIGHEST - LOWEST + 2, len(PLAN) * self.bars * BAR
        size = {"width": self.width, "depth": self.depth}
        return SideBySide(
            {
                "lstm": RecurrentLanguageModel(notes, **size),
                "places": gpt(notes, window, heads=4, **size),
                "distances": music_transformer(notes, window, heads=4, **size),
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        train, _ = modulating_pieces(self.pieces, bars=self.bars, seed=2 * run.seed)
        test, home = modulating_pieces(self.test, bars=self.bars, seed=2 * run.seed + 1)
        batches = Split(as_tokens(train).to(run.device)).batches(self.batch, self.steps)
        models = learn(run, run.build(self.model), batches, steps=self.steps, lr=self.lr)

        tokens = as_tokens(test).to(run.device)
        third = 1 + tokens.shape[1] * 3 // 4
        entropy = form_entropy(self.bars)
        costs, shares, ends = {}, {"true": in_home_key(test[:, third - 1 :], home)}, {"true": test[:, third - 1 :]}
        with torch.no_grad():
            for name, model in models.every():
                costs[name] = model.eval().nll(tokens).cpu()
                after = written(model, tokens[:, :third], chooser(temperature=1.0), tokens.shape[1] - third)
                ends[name] = (after.cpu() + LOWEST - 1).clamp(min=LOWEST)
                shares[name] = in_home_key(ends[name], home)
        self.show(run, models, tokens, costs=costs, shares=shares)
        show_pieces(run, test, ends, third - 1, int(home[0]))
        return {
            **{f"home/{name}": share for name, share in shares.items()},
            **{f"excess/{name}": float(cost.sum(1).mean()) - entropy for name, cost in costs.items()},
            "entropy": entropy,
        }

    def show(
        self,
        run: Run,
        models: SideBySide[LanguageModel | RecurrentLanguageModel],
        tokens: Tensor,
        *,
        costs: Mapping[str, Tensor],
        shares: Mapping[str, float],
    ) -> None:
        named = {NAMES.get(name, "the pieces themselves"): share for name, share in shares.items()}
        run.figure(
            "home",
            bars(named, x_label="share of endings in the home key", reference=("chance", 1 / len(KEYS))),
            "Each model was given three sections of an unseen piece and wrote the fourth. The key is told by the "
            "Krumhansl profiles, which find that of a true ending nearly always.",
        )
        notes = range(1, tokens.shape[1])
        lines = {NAMES[name]: (list(notes), cost.mean(0)) for name, cost in costs.items()}
        run.figure(
            "cost_by_place",
            curves(lines, x_label="note of the piece", y_label="nats"),
            "What each note costs: the first one the key, the first of a bar its octave, the next ones its figure. The "
            "recurrent network pays more wherever the key must be known.",
        )
        maps = attention_maps(models.one("distances"), tokens[:1, :-1])
        run.figure(
            "looking_back",
            draw_looks(torch.stack([layer[0].mean(0) for layer in maps.values()]).cpu(), self.bars * BAR),
            "Where attention by distances looks, the mean of its heads in each layer: a row is a note, a column what "
            "it looks at; lines part the four sections.",
        )


def learn(run: Run, models: SideBySide[Model], batches: Batches[Tensor], *, steps: int, lr: float) -> SideBySide[Model]:
    """All models by Adam, whose rate rises to `lr` within a tenth of the steps and falls to 0."""
    count = len(models)  # asked now: what torchrun wraps has no length
    models, optimizer = run.prepare(models, partial(Adam, lr=lr))
    warming = OneCycleLR(optimizer, lr, total_steps=steps + 1, pct_start=0.1, cycle_momentum=False)
    run.keep("warming", warming)
    for step, loss in descend(run, models, optimizer, batches):
        warming.step()
        run.log(step, loss=loss / count)
    return models


def as_tokens(pieces: Int[Tensor, "count time"]) -> Int[Tensor, "count time_and_one"]:
    """Pitches as tokens from 1 on, with the one that begins a piece before them."""
    return nn.functional.pad(pieces - LOWEST + 1, (1, 0), value=START)


def in_home_key(endings: Int[Tensor, "count time"], home: Int[Tensor, " count"]) -> float:
    """The share of endings whose key is that of the home."""
    return float((key_scores(endings).argmax(1) == home).double().mean())  # major keys come first, by tonic


def show_pieces(run: Run, test: Tensor, ends: Mapping[str, Tensor], cut: int, home: int) -> None:
    keys = " → ".join(str(key) for key in sections(Key(home)))
    figure, axes = subplots(len(ends), 1, size=(9.0, 1.5 * len(ends)))
    for ax, (name, after) in zip(axes[:, 0], ends.items(), strict=True):
        before = test[0, :cut]
        ax.scatter(range(cut), before.numpy(), s=9, color=PALETTE[0])
        ax.scatter(range(cut, cut + after.shape[1]), after[0].numpy(), s=9, color=PALETTE[1])
        ax.set_title(NAMES.get(name, "the piece"), fontsize=9, loc="left")
        ax.set(ylabel="pitch", ylim=(LOWEST - 2, HIGHEST + 2))
    run.figure("endings", figure, f"One unseen piece, {keys}: its last section, and what each model wrote instead.")


def draw_looks(maps: Tensor, section: int) -> "Figure":
    """One picture for each layer, with lines between the sections."""
    figure, axes = subplots(1, len(maps), size=(4.2 * len(maps), 4.0))
    for number, (ax, weights) in enumerate(zip(axes[0], maps, strict=True)):
        ax.imshow(weights.sqrt().numpy(), cmap=SEQUENTIAL, vmin=0)
        for edge in range(section, len(weights), section):
            ax.axhline(edge - 0.5, color=PALETTE[1], linewidth=0.6)
            ax.axvline(edge - 0.5, color=PALETTE[1], linewidth=0.6)
        ax.set(title=f"layer {number + 1}", xlabel="note", ylabel="note" if number == 0 else "")
        ax.grid(visible=False)
    return figure
