"""Attention pooling translates the article of English phrases by attending to the noun (Diehl sec. 2.2).

Predict the German article: echo "we saw the old tree" | parnassus predict last
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from parnassus.attention.models.article_classifier import (
    ARTICLE_OF_NOUN,
    ARTICLES,
    PHRASE_PARTS,
    ArticleClassifier,
    encode_phrases,
    known_words,
)
from parnassus.data import DataError, Split
from parnassus.optim import AdamW
from parnassus.report import INK, bar_chart, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.text.tokeniser import report_unknown_words
from parnassus.train import NonNegative, Positive, Run, at_least, between, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow, non_empty_lines
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-14", "B10.1-6")
expected = {
    "accuracy": at_least(0.97, "fraction of test phrases with the correct article"),
    "weight_on_the_noun": at_least(0.35, "mean attention weight of the noun in test phrases"),
    "weight_before_training": between(
        0.1, 0.35, "mean attention weight of the noun before training; uniform attention gives about 0.2"
    ),
    "noun_first": at_least(0.6, "fraction of test phrases in which the noun has the largest weight"),
    "most_frequent": no_band("accuracy of the most frequent article on the test phrases"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 20}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 500  # phrases, four fifths of them for training
    width: Positive[int] = 16  # width of the embedding and of the single head
    steps: Positive[int] = 1_200  # gradient steps
    batch_size: Positive[int] = 32  # phrases per gradient step
    learning_rate: Positive[float] = 3e-3  # learning rate of AdamW
    weight_decay: NonNegative[float] = 0.5  # weight decay of AdamW; without it other words keep some attention

    def model(self) -> ArticleClassifier:
        return ArticleClassifier(self.width)

    def __call__(self, run: Run) -> dict[str, float]:
        phrases = sample_phrases(self.num_examples, seed=run.seed)
        data = Split(encode_phrases(phrases), article_labels(phrases)).to(run.device)
        num_train = len(phrases) * 4 // 5
        test_phrases = phrases[num_train:]
        test, test_labels = data.x[num_train:], article_labels(test_phrases)
        model, optimizer = run.prepare(
            run.build(self.model), partial(AdamW, lr=self.learning_rate, weight_decay=self.weight_decay)
        )
        initial = noun_weights(model.weights(test), test_phrases)
        for step, loss in descend(run, model, optimizer, data.take(num_train).pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)

        weights = model.weights(test)
        with torch.no_grad():
            predicted = model(test).argmax(1).cpu()
        on_noun = noun_weights(weights, test_phrases)
        noun_is_largest = torch.tensor(
            [
                words.split()[int(row.argmax())] in ARTICLE_OF_NOUN
                for words, row in zip(test_phrases, weights, strict=True)
            ]
        )
        run.figure(
            "phrases",
            plot_phrases(test_phrases[:12], weights[:12], [ARTICLES[label] for label in predicted[:12]]),
            "Test phrases with their predicted articles, words coloured by attention weight.",
        )
        run.figure(
            "parts of speech",
            bar_chart(mean_weights(weights, test_phrases), x_label="mean attention weight of a word"),
            "Mean attention weight by part of speech. The only supervision is the article.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "article": article,
                "phrases": int(chosen.sum()),
                "attention weight of the noun": float(on_noun[chosen].mean()),
            }
            for article, chosen in ((name, test_labels == label) for label, name in enumerate(ARTICLES))
            if bool(chosen.any())
        ]
        run.table("articles", rows, "Test phrases by article.")
        accuracy = float((predicted == test_labels).float().mean())
        run.note(
            "results",
            f"In test phrases the noun has {float(on_noun.mean()):.0%} of the attention weight; before training it had "
            f"{float(initial.mean()):.0%}, close to uniform attention. The accuracy is {accuracy:.0%}. A class whose "
            "nouns have little weight is the default class: two of three classes must be recognised, the third "
            "follows by elimination. Attention weights show which words the prediction uses, not all that the model "
            "encodes.",
        )
        return {
            "accuracy": accuracy,
            "weight_on_the_noun": float(on_noun.mean()),
            "weight_before_training": float(initial.mean()),
            "noun_first": float(noun_is_largest.float().mean()),
            "most_frequent": float(test_labels.bincount(minlength=3).max()) / len(test_labels),
        }


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """The article of the noun in each line, and the word with the largest attention weight."""
        model = cast("ArticleClassifier", trained.model)
        for line in non_empty_lines(inputs):
            words = known_words(line)
            report_unknown_words([word for word in line.lower().split() if word not in words])
            if not words:
                raise DataError(f"a phrase must have at least one word of the training phrases; got {line!r}")
            tokens = encode_phrases([" ".join(words)])
            with torch.no_grad():
                probabilities, weights = model(tokens)[0].softmax(0), model.weights(tokens)[0, : len(words)]
            yield {
                "phrase": line,
                "article": ARTICLES[int(probabilities.argmax())],
                "probability": float(probabilities.max()),
                "attended_word": words[int(weights.argmax())],
                "attention_weight": float(weights.max()),
            }


def sample_phrases(count: int, *, seed: int) -> list[str]:
    """Distinct phrases, sampled uniformly from all combinations of their parts."""
    combinations = list(product(*PHRASE_PARTS.values()))
    order = torch.randperm(len(combinations), generator=torch.Generator().manual_seed(seed))[:count]
    return [" ".join(part for part in combinations[index] if part) for index in order.tolist()]


def article_labels(phrases: list[str]) -> Tensor:
    """The index of the article of the noun in each phrase."""
    nouns = [next(word for word in phrase.split() if word in ARTICLE_OF_NOUN) for phrase in phrases]
    return torch.tensor([ARTICLES.index(ARTICLE_OF_NOUN[noun]) for noun in nouns])


def noun_weights(weights: Tensor, phrases: list[str]) -> Tensor:
    """The attention weight of the noun in each phrase."""
    positions = [
        next(position for position, word in enumerate(phrase.split()) if word in ARTICLE_OF_NOUN) for phrase in phrases
    ]
    return weights[range(len(phrases)), positions]


def mean_weights(weights: Tensor, phrases: list[str]) -> dict[str, float]:
    """The mean attention weight of a word by part of the phrase."""
    part_of = {word: name for name, parts in PHRASE_PARTS.items() for part in parts for word in part.split()}
    by_part: dict[str, list[float]] = {name: [] for name in PHRASE_PARTS}
    for phrase, row in zip(phrases, weights.tolist(), strict=True):
        for word, weight in zip(phrase.split(), row, strict=False):
            by_part[part_of[word]].append(weight)
    return {name: float(np.mean(values)) for name, values in by_part.items() if values}


def plot_phrases(phrases: list[str], weights: Tensor, predicted: list[str]) -> "Figure":
    """One phrase per row, one word per cell, coloured by attention weight."""
    figure, axes = subplots(size=(8.4, 0.42 * len(phrases) + 0.7))
    ax = axes[0, 0]
    values = weights.clone()
    for row, phrase in enumerate(phrases):
        values[row, len(phrase.split()) :] = torch.nan
    image = ax.imshow(values.numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    for row, phrase in enumerate(phrases):
        for column, word in enumerate(phrase.split()):
            is_dark = float(weights[row, column]) < 0.6
            ax.text(column, row, word, ha="center", va="center", fontsize=9, color="#f8f8f8" if is_dark else "#111111")
    ax.set_yticks(range(len(phrases)), predicted)
    ax.set_xticks([])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, colors=INK)
    figure.colorbar(image, ax=ax, label="attention weight").outline.set_visible(False)
    return figure
