"""SHAP values and interactions of the words of a sentence, for a sentiment classifier (book secs. 17.0, 17.2).

Two models classify short opinions from a grammar in which `not` negates a word and the last clause determines the
label: a recurrent network, and a bag of words, which cannot represent this. Missing words are omitted, or masked by the
token of unknown words; both are applied to random words in training.
Classify: echo "the room was not very good" | parnassus predict last
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from parnassus.data import Split
from parnassus.data.built_in.phrases import GrammarSampler
from parnassus.optim import Adam
from parnassus.report import heatmap
from parnassus.shapley.attributions.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.attributions.masked_text import MaskedText, masked_ids
from parnassus.shapley.commands.programs import sentiment_programs
from parnassus.shapley.figures.force import plot_force
from parnassus.shapley.figures.text import plot_text
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import interaction_indices
from parnassus.text.tokeniser import Tokeniser, tokeniser_from_dict, tokeniser_to_dict, warn_unknown_words
from parnassus.text.word_tokeniser import UNKNOWN, WordTokeniser, split_words
from parnassus.train import ModelCollection, Positive, Run, Text, at_least, at_most, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow, non_empty_lines
from parnassus.train.trained import TrainedRun

covers = ("B17.0-1", "B17.2-1", "B17.3-1", "B17.4-1")
expected = {
    "accuracy": at_least(0.98, "test accuracy of the recurrent network"),
    "bag_of_words_accuracy": at_most(0.75, "test accuracy of the bag of words, which cannot represent negation"),
    "max_gap": at_most(1e-5, "maximum difference between a prediction and the sum of its SHAP values, in log-odds"),
    "interaction_not_good": at_most(-5.0, "interaction of “not” and “good”, in log-odds of positive sentiment"),
    "bag_of_words_interaction": at_most(1e-6, "absolute interaction of “not” and “good” in the bag of words"),
    "good_shap_value": at_least(3.0, "SHAP value of “good” in “the food was good”, in log-odds"),
    "good_shap_value_negated": no_band("SHAP value of “good” in “the food was not good”, in log-odds"),
    "relative_error": at_most(0.4, "relative root mean square error with 1/16 of the coalitions"),
    "omission_masking_correlation": no_band("correlation of SHAP values by omission and by masking"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "num_examples": 200, "num_test": 50, "sentence": "the food was not good"},
    "gpu": {"steps": 4_000, "num_examples": 20_000},
}

PADDING = "<padding>"
MASK = 1
"""The id of unknown words; 0 is padding, which both models ignore."""
PLAIN, NEGATED = "the food was good", "the food was not good"
LONG = "the film was really lovely but the food was not good"
SENTENCES = (PLAIN, NEGATED, "our room is not very dull", LONG)
SENTIMENTS = ("positive", "negative")
THINGS = ("the film", "the food", "this book", "our room", "the music", "that walk", "the wine", "her speech")
GOOD = ("good", "great", "lovely", "wonderful", "charming", "fine")
BAD = ("bad", "awful", "dull", "poor", "terrible", "boring")
CONJUNCTIONS = ("but", "and", "while")
DEGREES = ("very", "really", "quite", "so")


class SentimentClassifier(nn.Module):
    """A network that maps words to the log-odds of positive sentiment, with its loss."""

    def loss(self, ids: Int[Tensor, "batch time"], label: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
        return binary_cross_entropy_with_logits(self(drop_random_words(ids)), label)


class RecurrentClassifier(SentimentClassifier):
    """A GRU with mean pooling over its states."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.network = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        """Log-odds of positive sentiment."""
        is_token = (ids != 0)[..., None]
        states, _ = self.network(self.embedding(ids))
        log_odds: Tensor = self.out((states * is_token).sum(1) / is_token.sum(1).clamp(min=1))
        return log_odds[:, 0]


class BagOfWords(SentimentClassifier):
    """A sum of word weights, independent of their order."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.weights = nn.Embedding(vocabulary, 1, padding_idx=0)
        nn.init.zeros_(self.weights.weight)

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        total: Tensor = self.weights(ids).sum((1, 2))
        return total


class OpinionClassifiers(ModelCollection[nn.Module]):
    """Both classifiers with their tokeniser."""

    def __init__(self, tokeniser: Tokeniser, width: int) -> None:
        vocabulary = tokeniser.vocabulary
        super().__init__({"recurrent": RecurrentClassifier(vocabulary, width), "bag_of_words": BagOfWords(vocabulary)})
        self.tokeniser = tokeniser


@dataclass(frozen=True)
class Experiment:
    sentence: Text = "the film was really lovely but the food was not good"  # sentence to explain
    num_examples: Positive[int] = 2_000  # training texts
    num_test: Positive[int] = 500  # test texts
    steps: Positive[int] = 500  # gradient steps
    batch_size: Positive[int] = 64  # texts per gradient step
    width: Positive[int] = 32  # dimension of embeddings and states
    learning_rate: Positive[float] = 5e-3  # Adam's learning rate
    max_evals: Positive[int] = 4_096  # coalitions evaluated; exact for texts of up to 12 words

    def model(self, tokens: dict[str, object]) -> OpinionClassifiers:
        return OpinionClassifiers(tokeniser_from_dict(tokens), self.width)

    def __call__(self, run: Run) -> dict[str, float]:
        pairs = opinions(self.num_examples + self.num_test, seed=run.seed)
        tokeniser = WordTokeniser.fit(
            "\n".join(text for text, _ in pairs[: self.num_examples]), special=(PADDING, UNKNOWN)
        )
        train, test = (
            encode_texts(part, tokeniser).to(run.device)
            for part in (pairs[: self.num_examples], pairs[self.num_examples :])
        )
        models = run.build(self.model, tokens=tokeniser_to_dict(tokeniser))
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        recurrent, bag_of_words = models.model("recurrent"), models.model("bag_of_words")
        texts = dict.fromkeys((*SENTENCES, self.sentence))
        games = {text: masked_ids(recurrent, tokeniser.encode(text), pad_token_id=0) for text in texts}
        for step, loss in descend(run, models, optimizer, train.pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss / 2)

        found = {text: explain(game, game.full_input, self.max_evals) for text, game in games.items()}
        self.plot_texts(run, found, tokeniser)
        interactions = self.plot_interactions(run, games[NEGATED])
        additive = masked_ids(bag_of_words, tokeniser.encode(NEGATED), pad_token_id=0)
        self.compare_values(run, models, tokeniser, found[self.sentence])
        return {
            "accuracy": accuracy(recurrent, test),
            "bag_of_words_accuracy": accuracy(bag_of_words, test),
            "max_gap": max(
                float((each.prediction - games[text].model([tokeniser.encode(text).tolist()])).abs().max())
                for text, each in found.items()
            ),
            "interaction_not_good": float(interactions[3, 4]),
            "bag_of_words_interaction": float(pairwise_interactions(additive)[3, 4].abs()),
            "good_shap_value": float(found[PLAIN].values[0, 0, 3]),
            "good_shap_value_negated": float(found[NEGATED].values[0, 0, 4]),
            "relative_error": relative_error(games[LONG], fraction=16),
            "omission_masking_correlation": omission_masking_correlation(recurrent, tokeniser),
        }

    def plot_texts(self, run: Run, found: dict[str, Attribution], tokeniser: WordTokeniser) -> None:
        """A text plot of every text, and a force plot of the last one."""
        for number, (text, each) in enumerate(found.items(), 1):
            probability = float(each.prediction.sigmoid())
            is_positive = probability > 0.5
            title = f"{SENTIMENTS[0]}: {probability:.1%}" if is_positive else f"{SENTIMENTS[1]}: {1 - probability:.1%}"
            run.figure(
                f"text {number}",
                plot_text(split_words(text), each.values[0, 0], title=title),
                CAPTIONS.get(text, "The given sentence."),
            )
        attribution = found[self.sentence]
        run.figure(
            "force plot",
            plot_force(
                float(attribution.base_values),
                attribution.values[0, 0],
                split_words(self.sentence),
                x_label="log-odds of positive sentiment",
            ),
            "The last text again: from the output without any word to the prediction.",
        )
        new = [f"“{word}”" for word in split_words(self.sentence) if word not in tokeniser.words]
        if new:
            run.note("unknown words", f"{', '.join(new)} did not occur in training and are masked in every coalition.")

    def plot_interactions(self, run: Run, game: MaskedText[int]) -> Tensor:
        """Shapley interaction indices of all pairs of words."""
        words = split_words(NEGATED)
        interactions = pairwise_interactions(game)
        run.figure(
            "interactions",
            heatmap(interactions, row_labels=words, column_labels=words, diverging=True, annotate=True),
            f"“{NEGATED}”: interaction indices of pairs of words off the diagonal, SHAP values on the diagonal. “good” "
            "alone has a positive value; its interaction with “not” is negative.",
        )
        return interactions

    def compare_values(
        self, run: Run, models: ModelCollection[nn.Module], tokeniser: WordTokeniser, by_omission: Attribution
    ) -> None:
        """SHAP values of the same text by omission, by masking, and of the bag of words."""
        ids = tokeniser.encode(self.sentence)
        masked = masked_ids(models.model("recurrent"), ids, mask_token_id=MASK)
        additive = masked_ids(models.model("bag_of_words"), ids, pad_token_id=0)
        others = [explain(game, game.full_input, self.max_evals).values[0, 0].tolist() for game in (masked, additive)]
        columns = zip(split_words(self.sentence), by_omission.values[0, 0].tolist(), *others, strict=True)
        rows = [
            {"word": word, "omission": round(omitted, 3), "masking": round(mask, 3), "bag of words": round(weight, 3)}
            for word, omitted, mask, weight in columns
        ]
        run.table(
            "values by method",
            rows,
            "SHAP values of words in log-odds of positive sentiment: of the recurrent network with missing words "
            "omitted or masked (a masked word before “good” may be a “not”), and of the bag of words.",
        )


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)
    network: Literal["recurrent", "bag_of_words"] = "recurrent"  # GRU, or sum of word weights

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """The sentiment of each line and its probability."""
        models = cast("OpinionClassifiers", trained.model)
        for line in non_empty_lines(inputs):
            warn_unknown_words(models.tokeniser, line)
            with torch.no_grad():
                positive = float(models.model(self.network)(models.tokeniser.encode(line)[None]).sigmoid())
            sentiment, probability = (SENTIMENTS[0], positive) if positive > 0.5 else (SENTIMENTS[1], 1 - positive)
            yield {"text": line, "class": sentiment, "probability": probability}


CAPTIONS = {
    PLAIN: "Colours are SHAP values of words in log-odds of positive sentiment, exact values over all coalitions of "
    "words with missing words omitted.",
    NEGATED: "With “not” the prediction is reversed; its SHAP value is about twice as large as that of “good” alone.",
    SENTENCES[2]: "“dull” after “not” has a positive value.",
    LONG: "The last clause determines the class. “lovely” has a non-zero value, since it determines the class in "
    "coalitions without that clause.",
}


def opinions(number: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """`number` distinct texts with their labels; 30 % of clauses are negated, half of the texts have two clauses."""
    if number < 0:
        raise ValueError(f"the number of opinions must not be negative; got number={number}")
    draw = GrammarSampler(seed)
    found: dict[str, str] = {}
    while len(found) < number:
        text, is_positive = _clause(draw)
        if draw.bernoulli(0.5):
            last, is_positive = _clause(draw)
            text = f"{text} {draw.choice(CONJUNCTIONS)} {last}"
        found.setdefault(text, SENTIMENTS[0 if is_positive else 1])
    return list(found.items())


def _clause(draw: GrammarSampler) -> tuple[str, bool]:
    """A clause about one thing, and whether it is positive."""
    is_positive, is_negated = draw.bernoulli(0.5), draw.bernoulli(0.3)
    words = [draw.choice(THINGS), draw.choice(("was", "is"))]
    words += ["not"] if is_negated else []
    words += [draw.choice(DEGREES)] if draw.bernoulli(0.4) else []
    return " ".join([*words, draw.choice(GOOD if is_positive else BAD)]), is_positive != is_negated


def drop_random_words(ids: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """A tenth of the words masked and a tenth omitted, as in the coalitions of an explanation."""
    uniform = torch.rand(ids.shape, device=ids.device)
    ids = torch.where((uniform < 0.1) & (ids != 0), MASK, torch.where(uniform > 0.9, 0, ids))
    return ids.gather(1, (ids == 0).long().argsort(dim=1, stable=True))  # padding moves to the end


def encode_texts(pairs: Sequence[tuple[str, str]], tokeniser: WordTokeniser) -> Split:
    """Texts as padded ids, with label 1 for positive."""
    ids = [tokeniser.encode(text) for text, _ in pairs]
    labels = torch.tensor([float(sentiment == SENTIMENTS[0]) for _, sentiment in pairs])
    return Split(nn.utils.rnn.pad_sequence(ids, batch_first=True), labels)


@torch.no_grad()
def accuracy(model: nn.Module, test: Split) -> float:
    assert test.y is not None
    return float(((model(test.x) > 0) == (test.y > 0.5)).double().mean())


def pairwise_interactions(game: MaskedText[int]) -> Float[Tensor, "players players"]:
    """Exact interaction indices of all pairs of words."""
    worth = game(game.full_input, all_coalitions(game.players))[0, 0]
    return interaction_indices(worth - worth[0])


def relative_error(game: MaskedText[int], fraction: int) -> float:
    """Root mean square error of SHAP values from 1/fraction of the coalitions, relative to the values."""
    exact = explain_exactly(game, game.full_input).values
    estimates = [explain(game, game.full_input, 2**game.players // fraction).values for _ in range(10)]
    return float((torch.stack(estimates) - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def omission_masking_correlation(model: nn.Module, tokeniser: WordTokeniser) -> float:
    """Correlation over all words between SHAP values by omission and by masking."""
    both = []
    for text in SENTENCES:
        ids = tokeniser.encode(text)
        games = masked_ids(model, ids, mask_token_id=MASK), masked_ids(model, ids, pad_token_id=0)
        both.append(torch.stack([explain_exactly(game, game.full_input).values[0, 0] for game in games]))
    return float(torch.corrcoef(torch.cat(both, 1))[0, 1])


PROGRAMS = {SentimentClassifier: sentiment_programs}  # what `parnassus export` writes
