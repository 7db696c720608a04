"""Which German article does an English phrase need? Attention learns to look at the noun (Diehl sec. 2.2)."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention import MultiHeadAttention, Widths, attention_maps, padding_mask
from parnassus.data.splits import Split
from parnassus.layers import mlp, relu
from parnassus.optim import AdamW
from parnassus.report import INK, bars, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, at_least, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-14", "B10.1-6")
expected = {
    "accuracy": at_least(0.97, "share of unseen phrases that get the right article"),
    "weight_on_the_noun": at_least(0.35, "of the attention in unseen phrases, mean"),
    "weight_before_training": between(0.1, 0.35, "the same at the start; all words alike is about a fifth"),
    "noun_first": at_least(0.6, "share of unseen phrases in which the noun gets the largest weight"),
    "most_frequent": reported("share of the most frequent article among unseen phrases"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 20}, "gpu": {}}

ARTICLES = ("der", "die", "das")
NOUNS = {
    "dog": "der", "table": "der", "tree": "der", "moon": "der", "spoon": "der", "key": "der", "coat": "der",
    "cat": "die", "sun": "die", "lamp": "die", "flower": "die", "door": "die", "watch": "die",
    "house": "das", "book": "das", "window": "das",
}  # fmt: skip
BEFORE = ("", "we saw", "they want", "she paints", "look at")
WHICH = ("the", "my", "this", "every")
HOW = ("", "very", "rather")
LIKE = ("old", "small", "red", "quiet", "bright", "heavy", "new")
AFTER = ("", "today", "again", "near us", "at night", "over there", "in spring")
KINDS = {
    "noun": tuple(NOUNS), "opening": BEFORE, "determiner": WHICH, "adverb": HOW, "adjective": LIKE, "ending": AFTER,
}  # fmt: skip
WORDS = tuple(sorted({word for kind in KINDS.values() for part in kind for word in part.split()}))
LONGEST = 8


@dataclass(frozen=True)
class Experiment:
    phrases: int = 500  # phrases, of which four fifths are learned from
    width: int = 16  # width of the embedding and of the one head
    steps: int = 1_200  # gradient steps
    batch: int = 32  # phrases a step
    lr: float = 3e-3  # AdamW's learning rate
    decay: float = 0.5  # its weight decay: without it other words keep a part of the attention that does no harm

    def model(self) -> "ArticleFinder":
        return ArticleFinder(self.width)

    def __call__(self, run: Run) -> dict[str, float]:
        phrases = [phrase for phrase, _ in drawn_phrases(self.phrases, seed=run.seed)]
        data = Split(encoded(phrases), articles(phrases)).to(run.device)
        share = len(phrases) * 4 // 5
        unseen = phrases[share:]
        test, test_labels = data.x[share:], articles(unseen)
        model, optimizer = run.prepare(run.build(self.model), partial(AdamW, lr=self.lr, weight_decay=self.decay))
        at_first = on_the_noun(model.weights(test), unseen)
        for step, loss in descend(run, model, optimizer, data.take(share).pairs(self.batch, self.steps)):
            run.log(step, loss=loss)

        weights = model.weights(test)
        with torch.no_grad():
            named = model(test).argmax(1).cpu()
        noun = on_the_noun(weights, unseen)
        largest = torch.tensor(
            [words.split()[int(row.argmax())] in NOUNS for words, row in zip(unseen, weights, strict=True)]
        )
        run.figure(
            "phrases",
            phrase_figure(unseen[:12], weights[:12], [ARTICLES[kind] for kind in named[:12]]),
            "Unseen phrases and the article that the model chose; the brighter a word, the more weight it got.",
        )
        run.figure(
            "kinds",
            bars(by_kind(weights, unseen), x_label="mean weight of a word"),
            "The mean weight of a word of each kind. Nobody told the model what a noun is: the articles did.",
        )
        rows: list[dict[str, str | float]] = [
            {"article": article, "phrases": int(mine.sum()), "weight on the noun": float(noun[mine].mean())}
            for article, mine in ((name, test_labels == kind) for kind, name in enumerate(ARTICLES))
            if bool(mine.any())
        ]
        run.table("articles", rows, "Unseen phrases by their article.")
        accuracy = float((named == test_labels).float().mean())
        run.note(
            "what to see",
            f"Of the weight in an unseen phrase {float(noun.mean()):.0%} lies on the noun; before training it was "
            f"{float(at_first.mean()):.0%}, about what a look at all words alike gives. {accuracy:.0%} of the articles "
            "are right. Where a whole article gets little weight on its nouns, it has become the answer for want of "
            "another: two of three must be recognised, the third need not be. Attention shows what a model uses, and "
            "not all that is there.",
        )
        return {
            "accuracy": accuracy,
            "weight_on_the_noun": float(noun.mean()),
            "weight_before_training": float(at_first.mean()),
            "noun_first": float(largest.float().mean()),
            "most_frequent": float(test_labels.bincount(minlength=3).max()) / len(test_labels),
        }


class ArticleFinder(nn.Module):
    """One learned question asks every word; two dense layers choose the article from what comes back."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS) + 1, width)
        self.question = nn.Parameter(torch.zeros(1, 1, width))
        self.attention = MultiHeadAttention(Widths(width, width, width, width), 1)
        self.choose = mlp((width, 32, len(ARTICLES)), activation=relu)

    def forward(self, phrases: Tensor) -> Tensor:
        """Logits of der, die and das."""
        words = self.embedding(phrases)
        question = self.question.expand(len(phrases), -1, -1)
        logits: Tensor = self.choose(self.attention(question, words, words, padding_mask(phrases))[:, 0])
        return logits

    def loss(self, phrases: Tensor, articles: Tensor) -> Tensor:
        return cross_entropy(self(phrases), articles)

    def weights(self, phrases: Tensor) -> Tensor:
        """How much of the attention each word gets, a row for each phrase."""
        (weights,) = attention_maps(self, phrases).values()
        return weights[:, 0, 0].cpu()


def drawn_phrases(count: int, *, seed: int) -> list[tuple[str, str]]:
    """Different phrases with their nouns, drawn from all that can be made."""
    made = list(product(BEFORE, WHICH, HOW, LIKE, NOUNS, AFTER))
    order = torch.randperm(len(made), generator=torch.Generator().manual_seed(seed))[:count]
    return [(" ".join(part for part in made[index] if part), made[index][4]) for index in order.tolist()]


def encoded(phrases: list[str]) -> Tensor:
    """Words by their number in the vocabulary, from 1; 0 fills up short phrases."""
    number = {word: index for index, word in enumerate(WORDS, 1)}
    rows = [[number[word] for word in phrase.split()] for phrase in phrases]
    return torch.tensor([row + [0] * (LONGEST - len(row)) for row in rows])


def articles(phrases: list[str]) -> Tensor:
    """The article of the noun in each phrase, by its number."""
    nouns = [next(word for word in phrase.split() if word in NOUNS) for phrase in phrases]
    return torch.tensor([ARTICLES.index(NOUNS[noun]) for noun in nouns])


def on_the_noun(weights: Tensor, phrases: list[str]) -> Tensor:
    """The weight that the noun of each phrase gets."""
    places = [next(place for place, word in enumerate(phrase.split()) if word in NOUNS) for phrase in phrases]
    return weights[range(len(phrases)), places]


def by_kind(weights: Tensor, phrases: list[str]) -> dict[str, float]:
    """The mean weight of a word of each kind."""
    kinds = {word: kind for kind, parts in KINDS.items() for part in parts for word in part.split()}
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for phrase, row in zip(phrases, weights.tolist(), strict=True):
        for word, weight in zip(phrase.split(), row, strict=False):
            found[kinds[word]].append(weight)
    return {kind: float(np.mean(values)) for kind, values in found.items() if values}


def phrase_figure(phrases: list[str], weights: Tensor, named: list[str]) -> "Figure":
    """A phrase a row, a word a cell, coloured by its weight."""
    figure, axes = subplots(size=(8.4, 0.42 * len(phrases) + 0.7))
    ax = axes[0, 0]
    shown = weights.clone()
    for row, phrase in enumerate(phrases):
        shown[row, len(phrase.split()) :] = torch.nan
    picture = ax.imshow(shown.numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    for row, phrase in enumerate(phrases):
        for column, word in enumerate(phrase.split()):
            dark = float(weights[row, column]) < 0.6
            ax.text(column, row, word, ha="center", va="center", fontsize=9, color="#f8f8f8" if dark else "#111111")
    ax.set_yticks(range(len(phrases)), named)
    ax.set_xticks([])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, colors=INK)
    figure.colorbar(picture, ax=ax, label="weight").outline.set_visible(False)
    return figure
