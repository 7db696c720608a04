"""A GPT learns several tasks p(output | input, task) with the task given in the prompt (book sec. 10.1.1).

A prompt contains two task tokens and a sequence of letters; the completion is the result of both tasks in order. Some
pairs of tasks are held out from training, to test zero-shot generalisation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.models.gpt import LanguageModel, rotary_gpt
from parnassus.data import Split
from parnassus.optim import Adam
from parnassus.report import heatmap
from parnassus.text.generation import generate
from parnassus.text.sampling import greedy
from parnassus.train import Positive, Run, at_least, at_most, descend, no_band

covers = ("B10.1.1-12",)
expected = {
    "accuracy": at_least(0.7, "fraction of test inputs with an exactly correct completion, trained task pairs"),
    "zero_shot_accuracy": no_band("fraction of test inputs with an exactly correct completion, held-out task pairs"),
    "accuracy_without_task": at_most(
        0.2, "fraction of exactly correct completions with the task tokens masked in the prompt"
    ),
    "loss": no_band("−log p(output | input, task) in nats per letter, test inputs, all task pairs"),
}
profiles = {
    "smoke": {"steps": 10, "batch_size": 16, "width": 16, "num_layers": 1, "num_examples": 500},
    "gpu": {"steps": 10_000},
}

LETTERS, LENGTH = 8, 5  # size of the alphabet, and letters in a prompt


def next_letters(x: Tensor) -> Tensor:
    """Each letter replaced by the next one of the alphabet, cyclically."""
    return (x + 1) % LETTERS


def count_distinct(x: Tensor) -> Tensor:
    """The number of distinct letters, encoded as a letter, padded with the first letter of the alphabet."""
    counts = torch.stack([(x == letter).any(1) for letter in range(LETTERS)], 1).sum(1)
    return torch.cat([counts[:, None], torch.zeros_like(x[:, 1:])], 1)


TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "copy": torch.clone,
    "reverse": lambda x: x.flip(1),
    "sort": lambda x: x.sort(1).values,
    "next": next_letters,
    "count": count_distinct,
}
NAMES = tuple(TASKS)
PAIRS = [(first, second) for first in NAMES[:-1] for second in NAMES]  # nothing follows count
HELD_OUT = (("reverse", "next"), ("sort", "reverse"), ("next", "count"))
BLANK, EQUALS = LETTERS + len(NAMES), LETTERS + len(NAMES) + 1
VOCABULARY = EQUALS + 1
PROMPT = 2 + LENGTH + 1  # two tasks, the letters and a separator


class ConditionalModel(nn.Module):
    """A language model whose loss covers the completion only: −log p(output | input, task)."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def loss(self, texts: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        """The mean of −log p per letter of the completion, in nats."""
        return self.model.nll(texts)[:, PROMPT - 1 :].mean()


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 1_200  # gradient steps
    batch_size: Positive[int] = 64  # sequences per gradient step
    width: Positive[int] = 64  # width of embeddings and layers
    num_layers: Positive[int] = 3  # transformer blocks
    learning_rate: Positive[float] = 5e-3  # peak learning rate of Adam, after 10 % of the steps
    num_examples: Positive[int] = 40_000  # training sequences

    def __call__(self, run: Run) -> dict[str, float]:
        generator = torch.Generator().manual_seed(run.seed)
        trained = [pair for pair in PAIRS if pair not in HELD_OUT]
        count = self.num_examples // len(trained)
        train = torch.cat([build_texts(pair, sample_letters(count, generator, test=False)) for pair in trained])
        tests = {pair: build_texts(pair, sample_letters(100, generator, test=True)).to(run.device) for pair in PAIRS}
        model = rotary_gpt(VOCABULARY, PROMPT + LENGTH, width=self.width, heads=4, depth=self.num_layers)
        conditional, optimizer, schedule = run.prepare(
            ConditionalModel(model),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        batches = Split(train).to(run.device).batches(self.batch_size, self.steps)
        for step, loss in descend(run, conditional, optimizer, batches):
            schedule.step()
            run.log(step, loss=loss)
        accuracies = {pair: exact_match(model, test) for pair, test in tests.items()}
        all_tests = torch.cat(list(tests.values()))
        without_task = all_tests.clone()
        without_task[:, :2] = BLANK
        run.figure(
            "accuracy by task",
            heatmap(
                torch.tensor([[accuracies[first, second] for second in NAMES] for first in NAMES[:-1]]).numpy(),
                row_labels=[f"{name}, then" for name in NAMES[:-1]],
                column_labels=list(NAMES),
                annotate=True,
            ),
            "Fraction of test inputs with an exactly correct completion, for each pair of tasks. Held out from "
            "training: " + "; ".join(" then ".join(pair) for pair in HELD_OUT) + ".",
        )
        run.table(
            "completions", [self.example(model, pair, tests[pair][:1]) for pair in (PAIRS[1], PAIRS[2], *HELD_OUT)]
        )
        with torch.no_grad():
            test_loss = float(conditional.loss(all_tests))
        return {
            "accuracy": mean([accuracies[pair] for pair in trained]),
            "zero_shot_accuracy": mean([accuracies[pair] for pair in HELD_OUT]),
            "accuracy_without_task": exact_match(model, without_task),
            "loss": test_loss,
        }

    def example(self, model: LanguageModel, pair: tuple[str, str], text: Tensor) -> dict[str, str | float]:
        """A prompt, the completion of the model and the correct one."""
        completion = generate(model, text[:, :PROMPT], greedy, LENGTH)[0]
        return {
            "prompt": f"{pair[0]}, {pair[1]}: {decode_letters(text[0, 2 : 2 + LENGTH])}",
            "completion": decode_letters(completion),
            "correct": decode_letters(text[0, PROMPT:]),
            "task pair": "held out" if pair in HELD_OUT else "trained",
        }


def sample_letters(rows: int, generator: torch.Generator, *, test: bool) -> Int[Tensor, "rows count"]:
    """Random letters; inputs whose indices add up to a multiple of five are reserved for the test."""
    candidates = torch.randint(0, LETTERS, (8 * rows + 50, LENGTH), generator=generator)
    return candidates[(candidates.sum(1) % 5 == 0) == test][:rows]


def build_texts(pair: tuple[str, str], letters: Int[Tensor, "rows count"]) -> Int[Tensor, "rows time"]:
    """Two task tokens, the letters, a separator, and the result of both tasks."""
    first, second = pair
    tasks = torch.tensor([LETTERS + NAMES.index(first), LETTERS + NAMES.index(second)]).expand(len(letters), 2)
    separator = torch.full((len(letters), 1), EQUALS)
    return torch.cat([tasks, letters, separator, TASKS[second](TASKS[first](letters))], 1)


def exact_match(model: LanguageModel, texts: Int[Tensor, "rows time"]) -> float:
    """The fraction of texts whose greedy completion is correct in every letter."""
    completions = generate(model, texts[:, :PROMPT], greedy, LENGTH)
    return float((completions == texts[:, PROMPT:]).all(1).float().mean())


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def decode_letters(letters: Int[Tensor, " count"]) -> str:
    """Indices as letters; ? for other tokens."""
    return "".join("abcdefgh"[letter] if letter < LETTERS else "?" for letter in letters.tolist())
