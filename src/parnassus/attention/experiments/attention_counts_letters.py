"""One attention layer learns to count the occurrences of the last letter of a word (Diehl sec. 2.2).

Gradient descent succeeds from some initialisations only, so several are trained and the one with the lowest training
loss is kept. More succeed if queries and keys are initialised equally: each letter then attends to equal letters.
Count: echo "abacadabca" | parnassus predict last
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention import AttentionWidths, MultiHeadAttention
from parnassus.data import DataError, Split
from parnassus.layers import check_labels, mlp, relu
from parnassus.optim import Adam
from parnassus.report import FAINT, INK, PALETTE, heatmap, subplots
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, between, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow, non_empty_lines
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-13", "D2.2.3")
expected = {
    "accuracy": at_least(0.97, "test accuracy of the best of several initialisations"),
    "accuracy_without_start": no_band(
        "test accuracy of the best of several initialisations, no start token before the word"
    ),
    "success_tied": no_band("fraction of tied initialisations (equal queries and keys) that learn to count"),
    "success_independent": no_band("fraction of independent initialisations (the usual ones) that learn to count"),
    "accuracy_mean_pooling": between(0.35, 0.55, "test accuracy of mean pooling instead of attention"),
    "match_score": between(1.5, 5.0, "λ, score of an equal letter minus that of other letters, mean over letters"),
    "weight_error": at_most(0.05, "RMS difference between the weight on equal letters and c·e^λ/(c·e^λ + n − c)"),
    "accuracy_half_length": no_band("accuracy on words of half the training length"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 20, "num_examples": 200, "num_trials": 2}, "gpu": {}}


KINDS = ("tied", "independent", "without start", "mean pooling")
SUCCESS_ACCURACY = 0.97  # test accuracy from which a model counts as successful


@dataclass(frozen=True)
class Experiment:
    num_letters: Positive[int] = 4  # size of the alphabet
    length: Positive[int] = 10  # length n of a word
    num_examples: Positive[int] = 4_000  # training words
    width: Positive[int] = 16  # width of embedding, queries, keys and values
    steps: Positive[int] = 1_000  # gradient steps
    num_trials: Positive[int] = 5  # initialisations of each kind, trained side by side
    learning_rate: Positive[float] = 1e-2  # peak learning rate of Adam, after 10 % of the steps

    def model(self) -> ModelCollection["LetterCounter"]:
        def build(*, has_start: bool = True, use_attention: bool = True) -> LetterCounter:
            return LetterCounter(
                self.num_letters, self.length, self.width, has_start=has_start, use_attention=use_attention
            )

        models = {"mean pooling": build(has_start=False, use_attention=False)}
        for trial in range(self.num_trials):
            models[f"independent {trial}"] = build()
            models[f"tied {trial}"] = tie_initial_weights(build())
            models[f"without start {trial}"] = tie_initial_weights(build(has_start=False))
        return ModelCollection(models)

    def __call__(self, run: Run) -> dict[str, float]:
        words = random_words(self.num_examples, self.length, self.num_letters, seed=run.seed).to(run.device)
        test = random_words(2_000, self.length, self.num_letters, seed=run.seed + 10_000).to(run.device)
        shorter = random_words(2_000, self.length // 2, self.num_letters, seed=run.seed + 20_000).to(run.device)
        models, optimizer, schedule = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, loss in descend(run, models, optimizer, words.pairs(128, self.steps)):
            schedule.step()
            run.log(step, loss=loss / len(models))

        counts = check_labels(words.y, self.length)
        with torch.no_grad():
            losses = {name: float(model.loss(words.x, counts)) for name, model in models.named_models()}
            accuracies = {name: accuracy_of(model, test) for name, model in models.named_models()}
            best = {
                kind: min((name for name in losses if name.startswith(kind)), key=lambda name: losses[name])
                for kind in KINDS
            }
            model = models.model(best["tied"])
            half_length = accuracy_of(model, shorter)
            matches = LetterMatchWeights.from_model(model, test)
            self.plot_results(run, model, test, matches)
        accuracy = {kind: accuracies[name] for kind, name in best.items()}
        by_kind = {kind: [value for name, value in accuracies.items() if name.startswith(kind)] for kind in KINDS}
        success = {
            kind: sum(value >= SUCCESS_ACCURACY for value in values) / len(values) for kind, values in by_kind.items()
        }
        run.figure(
            "initialisations",
            plot_accuracies(by_kind),
            f"Test accuracy of {self.num_trials} random initialisations of each kind (one with mean pooling). Gradient "
            "descent can end in a local minimum in which only some letters match themselves. Tied: queries and keys "
            "have the same initial weights, so that a letter attends to equal letters; also used without a start "
            "token. Dashed: the accuracy that counts as success.",
        )
        match_scores = matches.match_scores(self.num_letters)
        run.note(
            "results",
            f"Equal letters score λ = {float(match_scores.mean()):.2f} above other letters on average. The MLP does "
            "not receive the last letter, only the output of attention. It obtains the count from the weight on the "
            "start token, e^s / (e^s + c·e^λ + n − c), which is the same for letters of equal s and λ. The accuracy is "
            f"{accuracy['without start']:.0%} without a start token and {accuracy['tied']:.1%} with it, each for the "
            f"best of {self.num_trials} initialisations, and {accuracy['mean pooling']:.0%} with mean pooling. "
            f"{success['tied']:.0%} of the tied and {success['independent']:.0%} of the independent initialisations "
            "learn to count. The weights also depend on n, less so for larger λ: the accuracy on words of half the "
            f"training length is {half_length:.0%}.",
        )
        return {
            "accuracy": accuracy["tied"],
            "accuracy_without_start": accuracy["without start"],
            "success_tied": success["tied"],
            "success_independent": success["independent"],
            "accuracy_mean_pooling": accuracy["mean pooling"],
            "match_score": float(match_scores.mean()),
            "weight_error": float((matches.weight - matches.predicted_weight(match_scores)).square().mean().sqrt()),
            "accuracy_half_length": half_length,
        }

    def plot_results(self, run: Run, model: "LetterCounter", test: Split, matches: "LetterMatchWeights") -> None:
        names = alphabet(self.num_letters)
        run.figure(
            "attention weight on equal letters",
            plot_weights(matches, matches.match_scores(self.num_letters), names),
            "The fraction of the attention weight on letters equal to the last one, against their number. Dots: test "
            "words, with horizontal jitter. Lines: c e^λ / (c e^λ + n − c) with a λ for each last letter; they "
            "increase with c, so the count can be decoded.",
        )
        scores = model.scores().cpu()
        run.figure(
            "scores",
            heatmap(
                scores,
                row_labels=names,
                column_labels=[*names, "start"],
                x_label="key",
                y_label="query (last letter)",
                diverging=True,
                annotate=True,
            ),
            "The scores of all letters and the start token for each last letter, minus the mean over letters. The "
            "diagonal belongs to equal letters, which score highest.",
        )
        predicted = model(test.x[:8]).argmax(1) + 1
        rows: list[dict[str, str | float]] = [
            {"word": word, "count": word.count(word[-1]), "predicted": int(count)}
            for word, count in zip(decode_words(test.x[:8]), predicted, strict=True)
        ]
        run.table("words", rows, "Test words, the number of occurrences of the last letter, and the prediction.")


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """For each word its number of occurrences of the last letter, and the prediction of the best tied model."""
        model = trained.compute_once(select_tied_model)
        letters = alphabet(cast("Experiment", trained.experiment).num_letters)
        for word in (word for line in non_empty_lines(inputs) for word in line.split()):
            if not set(word) <= set(letters):
                raise DataError(f"words must consist of the letters {', '.join(letters)}; got {word!r}")
            with torch.no_grad():
                probabilities = model(torch.tensor([[letters.index(letter) for letter in word]]))[0].softmax(0)
            yield {
                "word": word,
                "count": word.count(word[-1]),
                "predicted": int(probabilities.argmax()) + 1,
                "probability": float(probabilities.max()),
            }


class LetterCounter(nn.Module):
    """Attention with the last letter as query, and an MLP that classifies the count from its output alone.

    With `has_start` a start token precedes every word. Without `use_attention` the values are averaged instead.
    """

    def __init__(self, letters: int, length: int, width: int, *, has_start: bool, use_attention: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters + 1, width)
        self.attention = MultiHeadAttention(AttentionWidths(width, width, width, width), 1)
        self.output = mlp((width, 64, length), activation=relu)
        self.has_start, self.use_attention = has_start, use_attention

    def forward(self, words: Tensor) -> Tensor:
        """Logits of the counts 1, 2, …, length."""
        x = self.embed(words)
        if self.use_attention:
            pooled = self.attention(x[:, -1:], x, x)[:, 0]
        else:
            pooled = self.attention.out_proj(self.attention.value(x).mean(1))
        logits: Tensor = self.output(pooled)
        return logits

    def embed(self, words: Tensor) -> Tensor:
        """Embedded letters, after the start token if there is one."""
        start = self.embedding.num_embeddings - 1
        embeddings: Tensor = self.embedding(pad(words, (1, 0), value=start) if self.has_start else words)
        return embeddings

    def loss(self, words: Tensor, counts: Tensor) -> Tensor:
        return cross_entropy(self(words), counts)

    def weights(self, words: Tensor) -> Tensor:
        """The attention weights of the last letter on the letters of the word, normalised without the start token."""
        x = self.embed(words)
        weights = self.attention.weights(x[:, -1:], x)[:, 0, 0, -words.shape[1] :]
        return weights / weights.sum(1, keepdim=True)

    def scores(self) -> Tensor:
        """Scores of all letters and the start token for each query letter, centred over letters."""
        x = self.embedding.weight
        scores = self.attention.query(x[:-1]) @ self.attention.key(x).mT / x.shape[1] ** 0.5
        centred: Tensor = scores - scores[:, :-1].mean(1, keepdim=True)
        return centred


@torch.no_grad()
def select_tied_model(trained: TrainedRun) -> LetterCounter:
    """The tied model with the lowest loss on new words."""
    experiment, models = cast("Experiment", trained.experiment), cast("ModelCollection[LetterCounter]", trained.model)
    no_run = -1  # a seed that runs do not have
    words = random_words(experiment.num_examples, experiment.length, experiment.num_letters, seed=no_run)
    counts = check_labels(words.y, experiment.length)
    tied = [model for name, model in models.named_models() if name.startswith("tied")]
    return min(tied, key=lambda model: float(model.loss(words.x, counts)))


@torch.no_grad()
def tie_initial_weights(model: LetterCounter) -> LetterCounter:
    """Initialise keys with the weights of queries, so that most letters score highest with themselves."""
    model.attention.key.load_state_dict(model.attention.query.state_dict())
    return model


@dataclass(frozen=True, eq=False)
class LetterMatchWeights:
    """For words of length n: the last letter, its number of occurrences, and the attention weight on them."""

    length: int
    last: Tensor
    count: Tensor
    weight: Tensor

    @classmethod
    def from_model(cls, model: LetterCounter, words: Split) -> "LetterMatchWeights":
        equal = words.x == words.x[:, -1:]
        weight = (model.weights(words.x) * equal).sum(1)
        return cls(words.x.shape[1], words.x[:, -1].cpu(), equal.sum(1).cpu(), weight.cpu())

    def match_scores(self, letters: int) -> Tensor:
        """λ of each last letter, the median over words of log(w / (1 − w)) − log(c / (n − c))."""
        odds = self.weight.logit(eps=1e-6) - (self.count / (self.length - self.count)).log()
        by_letter = [odds[(self.last == letter) & (self.count < self.length)] for letter in range(letters)]
        return torch.stack([part.median() if len(part) else odds.new_zeros(()) for part in by_letter])

    def predicted_weight(self, match_scores: Tensor) -> Tensor:
        """The weight on equal letters for λ of each letter."""
        return weight_on_matches(self.count, self.length, match_scores[self.last])


def weight_on_matches(count: Tensor, length: int, match_score: Tensor) -> Tensor:
    """c·e^λ / (c·e^λ + n − c): the weight on c of n letters that score λ above the others (Diehl sec. 2.2)."""
    power = count * match_score.exp()
    return power / (power + length - count)


def random_words(count: int, length: int, letters: int, *, seed: int) -> Split:
    """Words of random letters; y is the number of earlier occurrences of the last letter, its count minus 1."""
    words = torch.randint(letters, (count, length), generator=torch.Generator().manual_seed(seed))
    return Split(words, (words[:, :-1] == words[:, -1:]).sum(1))


def accuracy_of(model: LetterCounter, words: Split) -> float:
    assert words.y is not None
    return float((model(words.x).argmax(1) == words.y).float().mean())


def decode_words(words: Tensor) -> list[str]:
    return ["".join(chr(ord("a") + letter) for letter in word) for word in words.tolist()]


def alphabet(letters: int) -> list[str]:
    """The first letters: a, b, c, …"""
    return [chr(ord("a") + index) for index in range(letters)]


def plot_weights(matches: LetterMatchWeights, match_scores: Tensor, names: list[str]) -> "Figure":
    """The weight on equal letters against their number, measured and predicted."""
    figure, axes = subplots(size=(6.8, 4.2))
    ax = axes[0, 0]
    noise = torch.rand(len(matches.count), generator=torch.Generator().manual_seed(0)) - 0.5
    x = matches.count + 0.3 * noise
    line = torch.linspace(0.5, matches.length, 200)
    for letter, (name, colour) in enumerate(zip(names, PALETTE, strict=False)):
        chosen = matches.last == letter
        ax.scatter(x[chosen], matches.weight[chosen], s=8, color=colour, alpha=0.35, linewidths=0, rasterized=True)
        predicted = weight_on_matches(line, matches.length, match_scores[letter])
        ax.plot(line, predicted, color=colour, linewidth=1.4, label=f"{name}, λ = {float(match_scores[letter]):.2f}")
    ax.plot(line, line / matches.length, color=INK, linestyle=":", linewidth=1.2, label="λ = 0, uniform")
    ax.set(xlabel="occurrences c of the last letter", ylabel="attention weight on these letters", ylim=(0, 1.03))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(loc="lower right")
    return figure


def plot_accuracies(accuracies: dict[str, list[float]]) -> "Figure":
    """One row of dots for each kind of initialisation."""
    figure, axes = subplots(size=(6.8, 2.6))
    ax = axes[0, 0]
    for row, (values, colour) in enumerate(zip(accuracies.values(), PALETTE, strict=False)):
        offsets = torch.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else torch.zeros(1)
        ax.scatter(values, row + offsets, s=34, color=colour)
    ax.axvline(SUCCESS_ACCURACY, color=FAINT, linestyle="--", linewidth=1.2)
    ax.set_yticks(range(len(accuracies)), list(accuracies))
    ax.invert_yaxis()
    ax.set(xlabel="test accuracy", xlim=(0, 1.03))
    return figure
