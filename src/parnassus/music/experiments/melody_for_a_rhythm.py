"""A rhythm is given, its pitches are found: two factors of a melody, one of them known (book sec. 10.1.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.gpt import LanguageModel, gpt
from parnassus.data import Split
from parnassus.music.rhythm import (
    CHORD,
    EIGHTHS,
    FIRST_PITCH,
    STRONG,
    VOCABULARY,
    factorised,
    melodies,
    melody_for,
    melody_nats,
    rhythm_tokens,
    strong,
    strong_tone_share,
)
from parnassus.music.solo import LOWEST
from parnassus.optim import Adam
from parnassus.report import PALETTE, bars, subplots
from parnassus.text.choosing import chooser
from parnassus.text.generation import written
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

covers = ("B10.1.2-6",)
expected = {
    "strong/hears_rhythm": at_least(0.9, "share of the notes on strong beats that belong to the tonic chord"),
    "strong/hears_none": at_most(0.8, "the same for a model that is not told the rhythm"),
    "nats/hears_rhythm": at_most(1.3, "−log p of a pitch of unseen melodies"),
    "nats/hears_none": reported("the same without the rhythm"),
    "nats/law": reported("the same by the law that made the melodies: what no model can fall below"),
}
profiles = {"smoke": {"steps": 4, "melodies": 64, "test": 16, "width": 16}}

NAMES = {"hears_rhythm": "hears the rhythm", "hears_none": "hears no rhythm"}


class Unheard(nn.Module):
    """The same model reading pitches alone: every second token, with the one that begins."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def loss(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        return self.model.loss(tokens[:, ::2])


@dataclass(frozen=True)
class Experiment:
    notes: int = 16  # of each melody
    melodies: int = 20_000  # to learn from
    test: int = 300  # unseen rhythms and melodies
    steps: int = 400  # gradient steps
    batch: int = 32  # melodies a step
    width: int = 64  # numbers for each token
    depth: int = 2  # blocks
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self) -> SideBySide[LanguageModel | Unheard]:
        new = partial(gpt, VOCABULARY, 2 * self.notes + 1, width=self.width, depth=self.depth)
        return SideBySide({"hears_rhythm": new(), "hears_none": Unheard(new())})

    def __call__(self, run: Run) -> dict[str, float]:
        train = melodies(self.melodies, notes=self.notes, seed=2 * run.seed)
        test = melodies(self.test, notes=self.notes, seed=2 * run.seed + 1)
        models = run.build(self.model)
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        tokens = factorised(rhythm_tokens(train.durations), train.pitches).to(run.device)
        for step, loss in descend(run, models, optimizer, Split(tokens).batches(self.batch, self.steps)):
            warming.step()
            run.log(step, loss=loss / len(models))

        rhythm = rhythm_tokens(test.durations).to(run.device)
        unseen = factorised(rhythm, test.pitches.to(run.device))
        hearing, deaf = models.one("hears_rhythm").eval(), models.one("hears_none").eval()
        if not isinstance(hearing, LanguageModel) or not isinstance(deaf, Unheard):
            raise TypeError("the models must be one of both factors and one of pitches alone")
        with torch.no_grad():
            nats = {
                "hears_rhythm": float(hearing.nll(unseen)[:, 1::2].mean()),  # of pitches alone
                "hears_none": float(deaf.model.nll(unseen[:, ::2]).mean()),
                "law": float(melody_nats(test).mean()),
            }
        alone = written(deaf.model, unseen[:, :1], chooser(), self.notes).clamp(min=FIRST_PITCH)
        found = {
            "hears_rhythm": melody_for(hearing, rhythm, chooser()).cpu(),
            "hears_none": alone.cpu() - FIRST_PITCH + LOWEST,
        }
        shares = {name: strong_tone_share(pitches, test.durations) for name, pitches in found.items()}
        run.figure(
            "strong_beats",
            bars(
                {NAMES[name]: share for name, share in shares.items()},
                x_label="share of the notes on strong beats that belong to the tonic chord",
                reference=("any note of the scale", 3 / 7),
            ),
            "Melodies for rhythms that were not seen before. In those that were learned from, every note on a strong "
            "beat belongs to the chord; who cannot hear where the beats are must guess.",
        )
        show_melodies(run, test.durations[0], {name: pitches[0] for name, pitches in found.items()})
        return {
            **{f"strong/{name}": share for name, share in shares.items()},
            **{f"nats/{name}": cost for name, cost in nats.items()},
        }


def show_melodies(run: Run, durations: Int[Tensor, " notes"], found: Mapping[str, Int[Tensor, " notes"]]) -> None:
    begin = durations.cumsum(0) - durations
    on_beat = strong(durations[None])[0]
    figure, axes = subplots(len(found), 1, size=(9.0, 2.2 * len(found)))
    for ax, (name, pitches) in zip(axes[:, 0], found.items(), strict=True):
        fits = (pitches[:, None] % 12 == torch.tensor(CHORD)).any(1)
        kinds = {
            "strong, of the chord": (on_beat & fits, PALETTE[0]),
            "strong, not of the chord": (on_beat & ~fits, PALETTE[1]),
            "weak": (~on_beat, "grey"),
        }
        for label, (which, colour) in kinds.items():
            ends = (begin + durations - 0.15)[which]
            ax.hlines(pitches[which], begin[which], ends, color=colour, linewidth=4, label=label)
        for beat in range(0, int(begin[-1] + durations[-1]) + 1, STRONG):
            ax.axvline(beat - 0.07, color="grey", linewidth=0.8 if beat % EIGHTHS == 0 else 0.3)
        ax.set_title(NAMES[name], fontsize=9, loc="left")
        ax.set(ylabel="pitch")
        ax.grid(visible=False, axis="x")
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0.2)
    axes[-1, 0].set_xlabel("eighths; lines at strong beats")
    run.figure("melodies", figure, "One unseen rhythm, and the pitches that each model found for it.")
