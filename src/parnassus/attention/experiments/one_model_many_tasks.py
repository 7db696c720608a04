"""One language model does several tasks, told by a word in its prompt which one is meant (book sec. 10.1.1).

A prompt names two tasks, one after the other, then gives letters; the model writes what comes out. It learns
p(output | input, task), and some pairs of tasks it never sees in training: can it do them at first sight?
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.gpt import LanguageModel, rotary_gpt
from parnassus.data import Split
from parnassus.optim import Adam
from parnassus.report import heatmap
from parnassus.text.choosing import greedy
from parnassus.text.generation import written
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B10.1.1-12",)
expected = {
    "seen_tasks": at_least(0.7, "share of unseen inputs answered without a mistake, tasks seen in training"),
    "first_sight": reported("the same for pairs of tasks that were never asked for together in training"),
    "without_the_task": at_most(0.2, "the same when the prompt does not name the tasks"),
    "loss": reported("−log p(output | input, task) of a letter, in nats; unseen inputs, all pairs of tasks"),
}
profiles = {"smoke": {"steps": 10, "batch": 16, "width": 16, "depth": 1, "rows": 500}, "gpu": {"steps": 10_000}}

LETTERS, COUNT = 8, 5
"""How many letters there are, and how many a prompt gives."""


def rotated(x: Tensor) -> Tensor:
    """Each letter becomes the next of the alphabet, the last the first."""
    return (x + 1) % LETTERS


def different(x: Tensor) -> Tensor:
    """How many different letters there are, as a letter, followed by the first letter of the alphabet."""
    found = torch.stack([(x == letter).any(1) for letter in range(LETTERS)], 1).sum(1)
    return torch.cat([found[:, None], torch.zeros_like(x[:, 1:])], 1)


TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "copy": torch.clone,
    "reverse": lambda x: x.flip(1),
    "sort": lambda x: x.sort(1).values,
    "next": rotated,
    "count": different,
}
NAMES = tuple(TASKS)
PAIRS = [(first, second) for first in NAMES[:-1] for second in NAMES]  # one that has counted has no letters left
UNSEEN = (("reverse", "next"), ("sort", "reverse"), ("next", "count"))
BLANK, EQUALS = LETTERS + len(NAMES), LETTERS + len(NAMES) + 1
VOCABULARY = EQUALS + 1
PROMPT = 2 + COUNT + 1  # two tasks, the letters, and a sign that it is the model's turn


class Answering(nn.Module):
    """A language model that is asked for the end of each text only: −log p(output | input, task)."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def loss(self, texts: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        return self.model.nll(texts)[:, PROMPT - 1 :].mean()


@dataclass(frozen=True)
class Experiment:
    steps: int = 1_200  # gradient steps
    batch: int = 64  # texts a step
    width: int = 64  # numbers for each token, in every layer
    depth: int = 3  # blocks, one upon the other
    lr: float = 5e-3  # Adam's largest learning rate, reached after a tenth of the steps
    rows: int = 40_000  # texts to learn from

    def __call__(self, run: Run) -> dict[str, float]:
        draw = torch.Generator().manual_seed(run.seed)
        seen = [pair for pair in PAIRS if pair not in UNSEEN]
        train = torch.cat([texts(pair, inputs(self.rows // len(seen), draw, test=False)) for pair in seen])
        tests = {pair: texts(pair, inputs(100, draw, test=True)).to(run.device) for pair in PAIRS}
        model = rotary_gpt(VOCABULARY, PROMPT + COUNT, width=self.width, heads=4, depth=self.depth)
        answering, optimizer = run.prepare(Answering(model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        batches = Split(train).to(run.device).batches(self.batch, self.steps)
        for step, loss in descend(run, answering, optimizer, batches):
            warming.step()
            run.log(step, loss=loss)
        right = {pair: accuracy(model, test) for pair, test in tests.items()}
        every = torch.cat(list(tests.values()))
        nameless = every.clone()
        nameless[:, :2] = BLANK
        run.figure(
            "tasks",
            heatmap(
                torch.tensor([[right[first, second] for second in NAMES] for first in NAMES[:-1]]).numpy(),
                row_labels=[f"{name}, then" for name in NAMES[:-1]],
                column_labels=list(NAMES),
                annotate=True,
            ),
            "Share of unseen inputs answered without a mistake, for each pair of tasks. Never asked for in training: "
            + "; ".join(" then ".join(pair) for pair in UNSEEN)
            + ".",
        )
        run.table("answers", [self.example(model, pair, tests[pair][:1]) for pair in (PAIRS[1], PAIRS[2], *UNSEEN)])
        with torch.no_grad():
            loss_unseen = float(answering.loss(every))
        return {
            "seen_tasks": mean([right[pair] for pair in seen]),
            "first_sight": mean([right[pair] for pair in UNSEEN]),
            "without_the_task": accuracy(model, nameless),
            "loss": loss_unseen,
        }

    def example(self, model: LanguageModel, pair: tuple[str, str], text: Tensor) -> dict[str, str | float]:
        """A prompt, what the model writes, and what is right."""
        answer = written(model, text[:, :PROMPT], greedy, COUNT)[0]
        return {
            "prompt": f"{pair[0]}, {pair[1]}: {spelt(text[0, 2 : 2 + COUNT])}",
            "it writes": spelt(answer),
            "right": spelt(text[0, PROMPT:]),
            "asked in training": "never" if pair in UNSEEN else "yes",
        }


def inputs(rows: int, draw: torch.Generator, *, test: bool) -> Int[Tensor, "rows count"]:
    """Random letters; those whose numbers add up to a multiple of five are kept for the test."""
    many = torch.randint(0, LETTERS, (8 * rows + 50, COUNT), generator=draw)
    return many[(many.sum(1) % 5 == 0) == test][:rows]


def texts(pair: tuple[str, str], letters: Int[Tensor, "rows count"]) -> Int[Tensor, "rows time"]:
    """Both tasks, the letters, a sign, and what the tasks make of the letters."""
    first, second = pair
    named = torch.tensor([LETTERS + NAMES.index(first), LETTERS + NAMES.index(second)]).expand(len(letters), 2)
    sign = torch.full((len(letters), 1), EQUALS)
    return torch.cat([named, letters, sign, TASKS[second](TASKS[first](letters))], 1)


def accuracy(model: LanguageModel, texts: Int[Tensor, "rows time"]) -> float:
    """Share of texts whose end is written without a mistake, the likeliest letter each time."""
    answers = written(model, texts[:, :PROMPT], greedy, COUNT)
    return float((answers == texts[:, PROMPT:]).all(1).float().mean())


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def spelt(letters: Int[Tensor, " count"]) -> str:
    """Numbers as letters."""
    return "".join("abcdefgh"[letter] if letter < LETTERS else "?" for letter in letters.tolist())
