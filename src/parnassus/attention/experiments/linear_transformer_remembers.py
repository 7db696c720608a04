"""Softmax, linear and local attention learn to remember; linear attention reads on like an RNN (Diehl sec. 4.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention import (
    Block,
    KeyValues,
    LinearSelfAttention,
    LocalSelfAttention,
    Memory,
    RunningSums,
    SelfAttention,
    feed_forward,
)
from parnassus.data.seeds import mix
from parnassus.optim import Adam
from parnassus.report import curves
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend, reported

covers = ("D4.1.2", "C-22")
expected = {
    "softmax": at_least(0.98, "share of answers that are right with softmax attention, as many pairs as in training"),
    "linear": at_least(0.75, "the same with linear attention"),
    "local": between(0.4, 0.75, "the same with local attention, which reaches half of what it should remember"),
    "softmax_when_full": at_least(0.95, "the same with a pair for every name, more than ever in training, softmax"),
    "linear_when_full": at_most(0.95, "the same with linear attention: its memory has one size"),
    "recurrent_gap": at_most(1e-3, "largest difference of logits, linear attention read token by token or at once"),
    "state_linear": reported("numbers that linear attention remembers after the longest reading"),
    "state_softmax": reported("numbers that softmax attention remembers then"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "judged": 64, "longest": 64},
    "gpu": {"steps": 4_000, "batch": 256, "judged": 4_096},
}


class Lesson(NamedTuple):
    """Names with values, then the same names in another order, whose values are to be said again."""

    names: Tensor
    values: Tensor
    answers: Tensor
    ago: Tensor  # places between a question and the pair that answers it


@dataclass(frozen=True)
class Experiment:
    steps: int = 400  # gradient steps
    batch: int = 32  # lessons a step
    pairs: int = 24  # pairs of a name and its value in a lesson of the training
    names: int = 64  # names there are
    values: int = 8  # values a name may have
    width: int = 32  # of the models
    lr: float = 3e-3  # Adam's learning rate
    judged: int = 512  # lessons for each number
    longest: int = 512  # tokens that are read one by one

    def __call__(self, run: Run) -> dict[str, float]:
        models = SideBySide[Recaller](
            {
                "softmax": self.model(SelfAttention(self.width, 1, causal=True)),
                "linear": self.model(LinearSelfAttention(self.width, 1, causal=True)),
                "local": self.model(LocalSelfAttention(self.width, 1, reach=self.pairs, causal=True)),
            }
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        for step, loss in descend(run, models, optimizer, Lessons(self, run.device)):
            run.log(step, loss=loss)
        models.eval()
        counts = sorted({4, 8, 16, self.pairs, 32, 48, self.names})
        with torch.no_grad():
            right = {name: [self.accuracy(model, count, run) for count in counts] for name, model in models.every()}
            self.show_recall(run, counts, right)
            self.show_distance(run, models)
            gap, states = self.read_on(run, models)
        trained, full = counts.index(self.pairs), counts.index(self.names)
        return {
            "softmax": right["softmax"][trained],
            "linear": right["linear"][trained],
            "local": right["local"][trained],
            "softmax_when_full": right["softmax"][full],
            "linear_when_full": right["linear"][full],
            "recurrent_gap": gap,
            "state_linear": float(states["linear"]),
            "state_softmax": float(states["softmax"]),
        }

    def model(self, attention: SelfAttention) -> "Recaller":
        return Recaller(attention, names=self.names, values=self.values, width=self.width)

    def lesson(self, count: int, pairs: int, generator: torch.Generator, device: torch.device) -> Lesson:
        """`pairs` different names with values at random, then all of them asked for in any order."""
        names = torch.rand(count, self.names, generator=generator).argsort(1)[:, :pairs]
        values = torch.randint(self.values, (count, pairs), generator=generator)
        order = torch.rand(count, pairs, generator=generator).argsort(1)
        unknown = torch.full_like(values, self.values)
        told = torch.cat([names, names.gather(1, order)], 1), torch.cat([values, unknown], 1)
        ago = pairs + torch.arange(pairs) - order
        return Lesson(*(part.to(device) for part in (*told, values.gather(1, order), ago)))

    def accuracy(self, model: "Recaller", pairs: int, run: Run) -> float:
        lesson = self.lesson(self.judged, pairs, torch.Generator().manual_seed(1), run.device)
        return float(correct(model, lesson).float().mean())

    def show_recall(self, run: Run, counts: list[int], right: dict[str, list[float]]) -> None:
        figure = curves(
            {name: (counts, shares) for name, shares in right.items()},
            x_label="pairs to remember",
            y_label="answers that are right",
            marks={"in training": self.pairs},
        )
        run.figure(
            "how much it remembers",
            figure,
            f"Softmax attention keeps every pair it has read. Linear attention keeps one {self.width} × {self.width} "
            "matrix: beyond what fits, pairs blur. Local attention forgets what is out of reach, and then guesses one "
            f"of {self.values} values.",
        )

    def show_distance(self, run: Run, models: SideBySide["Recaller"]) -> None:
        lesson = self.lesson(4 * self.judged, self.pairs, torch.Generator().manual_seed(2), run.device)
        ago = torch.arange(1, 2 * self.pairs, device=run.device)
        shares = {}
        for name, model in models.every():
            right = correct(model, lesson)
            shares[name] = (ago, torch.stack([right[lesson.ago == places].float().mean() for places in ago]))
        figure = curves(
            shares,
            x_label="places between question and pair",
            y_label="answers that are right",
            marks={"reach": self.pairs},
        )
        run.figure(
            "how far back it looks",
            figure,
            "Local attention is as good as softmax attention up to its reach, and knows nothing beyond.",
        )

    def read_on(self, run: Run, models: SideBySide["Recaller"]) -> tuple[float, dict[str, int]]:
        """Two models read one token after the other: what they remember, and whether they say what they did at once."""
        source = torch.Generator().manual_seed(3)
        names = torch.randint(self.names, (8, self.longest), generator=source).to(run.device)
        values = torch.randint(self.values + 1, (8, self.longest), generator=source).to(run.device)
        logits: dict[str, Tensor] = {}
        sizes: dict[str, list[int]] = {"softmax": [], "linear": []}
        for name, size in sizes.items():
            model = models.one(name)
            memory, said = model.attention.remember(8, self.longest), []
            for place in range(self.longest):
                said.append(model(names[:, place : place + 1], values[:, place : place + 1], memory))
                size.append(remembered(memory))
            logits[name] = torch.cat(said, 1)
        gap = float((logits["linear"] - models.one("linear")(names, values)).abs().max())
        places = range(1, self.longest + 1)
        run.figure(
            "what is kept while reading",
            curves(
                {name: (places, size) for name, size in sizes.items()},
                x_label="tokens read",
                y_label="numbers remembered",
            ),
            "Keys and values of softmax attention grow with every token; the sums of linear attention do not.",
        )
        run.note(
            "one network, two forms",
            f"Read token by token from its sums, the linear transformer gives the logits of the parallel pass, up to "
            f"{gap:.1e}. After {self.longest} tokens it remembers {sizes['linear'][-1]:,} numbers, as after the first; "
            f"softmax attention remembers {sizes['softmax'][-1]:,}.",
        )
        return gap, {name: size[-1] for name, size in sizes.items()}


class Recaller(nn.Module):
    """One block of causal attention that reads names with values and, where the value is unknown, says it."""

    def __init__(self, attention: SelfAttention, *, names: int, values: int, width: int) -> None:
        super().__init__()
        self.names, self.values = nn.Embedding(names, width), nn.Embedding(values + 1, width)
        self.block = Block(attention, feed_forward(width, 2 * width), norm=lambda: nn.LayerNorm(width))
        self.say = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, values))

    @property
    def attention(self) -> SelfAttention:
        return self.block.attention

    def forward(self, names: Tensor, values: Tensor, memory: Memory | None = None) -> Tensor:
        logits: Tensor = self.say(self.block(self.names(names) + self.values(values), None, memory))
        return logits

    def loss(self, names: Tensor, values: Tensor, answers: Tensor) -> Tensor:
        """−log p of the right value, at the questions."""
        said = self(names, values)[:, -answers.shape[1] :]
        return cross_entropy(said.flatten(0, 1), answers.flatten())


@dataclass(frozen=True)
class Lessons:
    """Lessons drawn anew at every step."""

    experiment: Experiment
    device: torch.device

    def __len__(self) -> int:
        return self.experiment.steps

    def at(self, step: int, seed: int, rank: int, world: int) -> tuple[Tensor, Tensor, Tensor]:
        source = torch.Generator().manual_seed(mix(seed, step, rank))
        size = max(1, self.experiment.batch // world)
        return self.experiment.lesson(size, self.experiment.pairs, source, self.device)[:3]


def correct(model: Callable[[Tensor, Tensor], Tensor], lesson: Lesson) -> Tensor:
    """Which questions were answered rightly."""
    said = model(lesson.names, lesson.values)[:, -lesson.answers.shape[1] :]
    return said.argmax(-1) == lesson.answers


def remembered(memory: Memory) -> int:
    """Numbers kept of one sequence."""
    if isinstance(memory, KeyValues):
        return 2 * memory.keys[0, :, : memory.count].numel()
    assert isinstance(memory, RunningSums)
    assert memory.sums is not None
    return memory.sums.values[0].numel() + memory.sums.normaliser[0].numel()
