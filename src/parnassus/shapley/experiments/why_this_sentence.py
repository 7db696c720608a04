"""Why is this sentence gloomy? A network's verdict, shared out among its words (book secs. 17.0, 17.2).

Two models read short opinions: a recurrent network, and one that adds up points of words. Words that are missing are
left out, or masked by the token of unknown words; in training both happened to some words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from parnassus.data import Split
from parnassus.data.opinions import MOODS, opinions
from parnassus.optim import Adam
from parnassus.report import heatmap
from parnassus.report.force import force
from parnassus.report.words import highlighted
from parnassus.shapley.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.game import members
from parnassus.shapley.tokens import MaskedText, masked_ids
from parnassus.shapley.values import interactions
from parnassus.text.words import UNKNOWN, WordTokeniser, split_words
from parnassus.train import Run, SideBySide, Words, at_least, at_most, descend, reported

covers = ("B17.0-1", "B17.2-1", "B17.3-1", "B17.4-1")
expected = {
    "accuracy": at_least(0.98, "share of unseen texts that the recurrent network reads right"),
    "accuracy_of_points": at_most(0.75, "the same for points of words, which cannot know what a “not” belongs to"),
    "not_additive": at_most(1e-5, "largest gap between a verdict and the sum of its parts, in log-odds"),
    "not_and_good": at_most(-5.0, "what “not” and “good” have together, in log-odds of cheerful"),
    "not_and_good_of_points": at_most(1e-6, "the same for points of words, its size: they have nothing together"),
    "good_alone": at_least(3.0, "part of “good” in a text that is cheerful by it, in log-odds"),
    "good_denied": reported("the same behind a “not”"),
    "error_of_few": at_most(0.4, "parts from a sixteenth of the coalitions: error over size, root mean squares"),
    "left_out_or_masked": reported("correlation of parts with those found when missing words are masked"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "texts": 200, "tests": 50, "sentence": "the food was not good"},
    "gpu": {"steps": 4_000, "texts": 20_000},
}

PADDING = "<padding>"
MASK = 1
"""The id of unknown words; 0 is padding, which both models overlook."""
PLAIN, DENIED = "the food was good", "the food was not good"
LONG = "the film was really lovely but the food was not good"
SENTENCES = (PLAIN, DENIED, "our room is not very dull", LONG)


class Reader(nn.Module):
    """A recurrent network from left to right; the mean of what it thinks after each word is its verdict."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.network = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        """Log-odds of cheerful."""
        there = (ids != 0)[..., None]
        states, _ = self.network(self.embedding(ids))
        verdict: Tensor = self.out((states * there).sum(1) / there.sum(1).clamp(min=1))
        return verdict[:, 0]

    def loss(self, ids: Int[Tensor, "batch time"], cheerful: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
        return binary_cross_entropy_with_logits(self(with_gaps(ids)), cheerful)


class Points(nn.Module):
    """Every word has its points, whatever stands beside it; they are added."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.points = nn.Embedding(vocabulary, 1, padding_idx=0)
        nn.init.zeros_(self.points.weight)

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        total: Tensor = self.points(ids).sum((1, 2))
        return total

    def loss(self, ids: Int[Tensor, "batch time"], cheerful: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
        return binary_cross_entropy_with_logits(self(with_gaps(ids)), cheerful)


@dataclass(frozen=True)
class Experiment:
    sentence: Words = "the film was really lovely but the food was not good"  # an opinion of yours, to be explained
    texts: int = 2_000  # opinions to learn from
    tests: int = 500  # unseen opinions
    steps: int = 500  # gradient steps
    batch: int = 64  # opinions a step
    width: int = 32  # numbers in a word and in the network's memory
    lr: float = 5e-3  # Adam's learning rate
    budget: int = 4_096  # coalitions of words that are asked; exact for texts of up to 12 words

    def model(self, vocabulary: int) -> SideBySide[nn.Module]:
        return SideBySide({"reader": Reader(vocabulary, self.width), "points": Points(vocabulary)})

    def __call__(self, run: Run) -> dict[str, float]:
        pairs = opinions(self.texts + self.tests, seed=run.seed)
        tokeniser = WordTokeniser.fit("\n".join(text for text, _ in pairs[: self.texts]), special=(PADDING, UNKNOWN))
        train, test = (encoded(part, tokeniser).to(run.device) for part in (pairs[: self.texts], pairs[self.texts :]))
        models = run.build(self.model, vocabulary=tokeniser.vocabulary)
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        reader, points = models.one("reader"), models.one("points")
        texts = dict.fromkeys((*SENTENCES, self.sentence))
        games = {text: masked_ids(reader, tokeniser.encode(text), padding=0) for text in texts}
        for step, loss in descend(run, models, optimizer, train.pairs(self.batch, self.steps)):
            run.log(step, loss=loss / 2)

        found = {text: explain(game, game.whole, self.budget) for text, game in games.items()}
        self.show_words(run, found, tokeniser)
        together = self.show_together(run, games[DENIED])
        added = masked_ids(points, tokeniser.encode(DENIED), padding=0)
        self.show_ways(run, models, tokeniser, found[self.sentence])
        return {
            "accuracy": accuracy(reader, test),
            "accuracy_of_points": accuracy(points, test),
            "not_additive": max(
                float((parts.prediction - games[text].ask([tokeniser.encode(text).tolist()])).abs().max())
                for text, parts in found.items()
            ),
            "not_and_good": float(together[3, 4]),
            "not_and_good_of_points": float(pairs_of(added)[3, 4].abs()),
            "good_alone": float(found[PLAIN].values[0, 0, 3]),
            "good_denied": float(found[DENIED].values[0, 0, 4]),
            "error_of_few": error_of_few(games[LONG], share=16),
            "left_out_or_masked": agreement(reader, tokeniser),
        }

    def show_words(self, run: Run, found: dict[str, Attribution], tokeniser: WordTokeniser) -> None:
        """Every text with its words coloured, and the last one as a bar of forces."""
        for number, (text, parts) in enumerate(found.items(), 1):
            share = float(parts.prediction.sigmoid())
            title = f"{MOODS[0]}: {share:.1%}" if share > 0.5 else f"{MOODS[1]}: {1 - share:.1%}"
            run.figure(
                f"text {number}",
                highlighted(split_words(text), parts.values[0, 0], title=title),
                ABOUT.get(text, YOURS),
            )
        parts = found[self.sentence]
        run.figure(
            "forces",
            force(float(parts.base), parts.values[0, 0], split_words(self.sentence), x_label="log-odds of cheerful"),
            "The last text again: from what the network says when it knows no word to its verdict.",
        )
        new = [f"“{word}”" for word in split_words(self.sentence) if word not in tokeniser.words]
        if new:
            run.note("unknown words", f"The network has not learned {', '.join(new)}: they are masked from the start.")

    def show_together(self, run: Run, game: MaskedText[int]) -> Tensor:
        """What every two words have together."""
        words = split_words(DENIED)
        together = pairs_of(game)
        run.figure(
            "what two words have together",
            heatmap(together, row_labels=words, column_labels=words, diverging=True, annotate=True),
            f"“{DENIED}”: off the diagonal, by how much two words count more (red) or less (blue) together than each "
            "does without the other; on the diagonal their own parts. “good” is good, but not with “not”.",
        )
        return together

    def show_ways(
        self, run: Run, models: SideBySide[nn.Module], tokeniser: WordTokeniser, left_out: Attribution
    ) -> None:
        """The same text with words masked instead of left out, and read by points."""
        ids = tokeniser.encode(self.sentence)
        masked = masked_ids(models.one("reader"), ids, stand_in=MASK)
        points = masked_ids(models.one("points"), ids, padding=0)
        others = [explain(game, game.whole, self.budget).values[0, 0].tolist() for game in (masked, points)]
        parts = zip(split_words(self.sentence), left_out.values[0, 0].tolist(), *others, strict=True)
        rows = [
            {"word": word, "left out": round(left, 3), "masked": round(mask, 3), "points of words": round(point, 3)}
            for word, left, mask, point in parts
        ]
        run.table(
            "three accounts of one text",
            rows,
            "Parts of words in the log-odds of cheerful: by the network when missing words are left out, when they are "
            "masked in their places (a gap before “good” may well have been a “not”), and by the model that adds up "
            "points.",
        )


ABOUT = {
    PLAIN: "A colour behind a word is its part: how much it raises or lowers the log-odds of cheerful. Parts are exact "
    "Shapley values over all coalitions of words; missing words are left out.",
    DENIED: "One word more, and the verdict is turned round: “not” takes what “good” gave, and as much again.",
    SENTENCES[2]: "“dull” behind “not” is praise.",
    LONG: "What is said last decides. “lovely” has a part because it would decide if what follows were not known.",
}
YOURS = "A text of yours."


def with_gaps(ids: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """A tenth of the words unknown and a tenth left out, so that a model learns what to say when it misses some."""
    luck = torch.rand(ids.shape, device=ids.device)
    ids = torch.where((luck < 0.1) & (ids != 0), MASK, torch.where(luck > 0.9, 0, ids))
    return ids.gather(1, (ids == 0).long().argsort(dim=1, stable=True))  # those that are left move together


def encoded(pairs: Sequence[tuple[str, str]], tokeniser: WordTokeniser) -> Split:
    """Texts as ids, filled up with padding, and 1 for each that is cheerful."""
    ids = [tokeniser.encode(text) for text, _ in pairs]
    cheerful = torch.tensor([float(mood == MOODS[0]) for _, mood in pairs])
    return Split(nn.utils.rnn.pad_sequence(ids, batch_first=True), cheerful)


@torch.no_grad()
def accuracy(model: nn.Module, test: Split) -> float:
    assert test.y is not None
    return float(((model(test.x) > 0) == (test.y > 0.5)).double().mean())


def pairs_of(game: MaskedText[int]) -> Float[Tensor, "players players"]:
    """What every two words have together, exactly."""
    worth = game(game.whole, members(game.players))[0, 0]
    return interactions(worth - worth[0])


def error_of_few(game: MaskedText[int], share: int) -> float:
    """By how much parts from few coalitions miss, over how large parts are."""
    exact = explain_exactly(game, game.whole).values
    few = [explain(game, game.whole, 2**game.players // share).values for _ in range(10)]
    return float((torch.stack(few) - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def agreement(model: nn.Module, tokeniser: WordTokeniser) -> float:
    """Correlation over all words between parts with left out and with masked words."""
    both = []
    for text in SENTENCES:
        ids = tokeniser.encode(text)
        games = masked_ids(model, ids, stand_in=MASK), masked_ids(model, ids, padding=0)
        both.append(torch.stack([explain_exactly(game, game.whole).values[0, 0] for game in games]))
    return float(torch.corrcoef(torch.cat(both, 1))[0, 1])
