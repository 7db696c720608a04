"""How often does the last letter occur? One attention layer learns to count (Diehl sec. 2.2).

Descent finds this from some random beginnings only, so there are several, and the best fit to the training words is
kept. More succeed where queries and keys begin alike: each letter then looks for itself.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention import MultiHeadAttention, Widths
from parnassus.data.splits import Split
from parnassus.layers import mlp, relu, require_labels
from parnassus.optim import Adam
from parnassus.report import FAINT, INK, PALETTE, heatmap, subplots
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-13", "D2.2.3")
expected = {
    "accuracy": at_least(0.97, "share of unseen words counted rightly, best fit of several beginnings"),
    "accuracy_without_a_start": reported("the same without a letter before the word that is looked at too"),
    "learned_alike": reported("share of beginnings with queries and keys alike that learn to count"),
    "learned_apart": reported("the same with queries and keys drawn apart, which is usual"),
    "accuracy_of_the_bag": between(0.35, 0.55, "the same by the mean of all letters, without a question"),
    "score_of_a_match": between(1.5, 5.0, "λ, by how much a match scores above other letters, mean over last letters"),
    "distance_from_the_law": at_most(0.05, "root mean square between the weight on matches and c·e^λ/(c·e^λ + n − c)"),
    "accuracy_at_half_the_length": reported("share of shorter words counted rightly, which were never trained on"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 20, "words": 200, "tries": 2}, "gpu": {}}


KINDS = ("alike", "apart", "without start", "bag")
LEARNED = 0.97
"""Share of unseen words from which on we say that a model counts."""


@dataclass(frozen=True)
class Experiment:
    letters: int = 4  # letters of the alphabet
    length: int = 10  # letters of a word, n
    words: int = 4_000  # words to learn from
    width: int = 16  # width of embedding, queries, keys and values
    steps: int = 1_000  # gradient steps
    tries: int = 5  # beginnings of each kind, trained side by side
    lr: float = 1e-2  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self) -> SideBySide["LastLetter"]:
        def one(*, starts: bool = True, asks: bool = True) -> LastLetter:
            return LastLetter(self.letters, self.length, self.width, starts=starts, asks=asks)

        models = {"bag": one(starts=False, asks=False)}
        for number in range(self.tries):
            models[f"apart {number}"] = one()
            models[f"alike {number}"] = begin_alike(one())
            models[f"without start {number}"] = begin_alike(one(starts=False))
        return SideBySide(models)

    def __call__(self, run: Run) -> dict[str, float]:
        words = random_words(self.words, self.length, self.letters, seed=run.seed).to(run.device)
        unseen = random_words(2_000, self.length, self.letters, seed=run.seed + 10_000).to(run.device)
        shorter = random_words(2_000, self.length // 2, self.letters, seed=run.seed + 20_000).to(run.device)
        models, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, models, optimizer, words.pairs(128, self.steps)):
            warming.step()
            run.log(step, loss=loss / len(models))

        counts = require_labels(words.y, self.length)
        with torch.no_grad():
            fits = {name: float(model.loss(words.x, counts)) for name, model in models.every()}
            shares = {name: share_right(model, unseen) for name, model in models.every()}
            best = {
                kind: min((name for name in fits if name.startswith(kind)), key=lambda name: fits[name])
                for kind in KINDS
            }
            model = models.one(best["alike"])
            at_half = share_right(model, shorter)
            seen = Matches.of(model, unseen)
            self.show(run, model, unseen, seen)
        accuracy = {kind: shares[name] for kind, name in best.items()}
        by_kind = {kind: [share for name, share in shares.items() if name.startswith(kind)] for kind in KINDS}
        learned = {kind: sum(share >= LEARNED for share in found) / len(found) for kind, found in by_kind.items()}
        run.figure(
            "beginnings",
            beginnings_figure(by_kind),
            f"Share of unseen words counted rightly, from {self.tries} random beginnings of each kind (one of the "
            "bag). Descent can settle with some letters matched and others not, and where it does depends on where it "
            "began. Alike: queries and keys have the same weights at first, so that a letter begins by looking for "
            "itself; so have those without a start. The line is where we say that a model counts.",
        )
        strengths = seen.strengths(self.letters)
        run.note(
            "what to see",
            f"A match scores λ = {float(strengths.mean()):.2f} above other letters, on average over last letters. The "
            "network after the layer never sees which letter came last, only what attention brings back. It reads the "
            "count from the weight on the start, e^s / (e^s + c·e^λ + n − c), alike for letters of equal s and λ. "
            f"Without a start {accuracy['without start']:.0%} of unseen words are counted rightly, with it "
            f"{accuracy['alike']:.1%}, each time by the best fit of {self.tries}; the mean of all letters, a bag that "
            f"nobody asks, gives {accuracy['bag']:.0%}. Of the beginnings with queries and keys alike "
            f"{learned['alike']:.0%} learn to count, of those drawn apart {learned['apart']:.0%}. All these weights "
            "depend on n as well, the less the larger λ: of words of half the length, never trained on, "
            f"{at_half:.0%} are counted rightly.",
        )
        return {
            "accuracy": accuracy["alike"],
            "accuracy_without_a_start": accuracy["without start"],
            "learned_alike": learned["alike"],
            "learned_apart": learned["apart"],
            "accuracy_of_the_bag": accuracy["bag"],
            "score_of_a_match": float(strengths.mean()),
            "distance_from_the_law": float((seen.weight - seen.law(strengths)).square().mean().sqrt()),
            "accuracy_at_half_the_length": at_half,
        }

    def show(self, run: Run, model: "LastLetter", unseen: Split, seen: "Matches") -> None:
        names = [chr(ord("a") + index) for index in range(self.letters)]
        run.figure(
            "weight",
            weight_figure(seen, seen.strengths(self.letters), names),
            "The share of the weight on letters that falls on those equal to the last one, against how many there are. "
            "Dots: unseen words, with a little sideways noise. Lines: c e^λ / (c e^λ + n − c) with a λ for each last "
            "letter; they grow with c, so the count can be read off.",
        )
        scores = model.scores().cpu()
        run.figure(
            "scores",
            heatmap(
                scores,
                row_labels=names,
                column_labels=[*names, "start"],
                x_label="looked at (key)",
                y_label="last letter (query)",
                diverging=True,
                annotate=True,
            ),
            "The score of every letter and of the start, for every last letter, less its mean over the letters. On the "
            "diagonal stands a letter that meets itself: the layer has learned who equals whom.",
        )
        counted = model(unseen.x[:8]).argmax(1) + 1
        rows: list[dict[str, str | float]] = [
            {"word": word, "count": word.count(word[-1]), "counted": int(number)}
            for word, number in zip(spelled(unseen.x[:8]), counted, strict=True)
        ]
        run.table("words", rows, "Unseen words, how often their last letter occurs, and what the model says.")


class LastLetter(nn.Module):
    """The last letter asks all letters, and a network tells the count from what comes back, and from nothing else.

    One that `starts` has a letter of its own before every word, to be looked at too. One that does not ask gets the
    mean of all values.
    """

    def __init__(self, letters: int, length: int, width: int, *, starts: bool, asks: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters + 1, width)
        self.attention = MultiHeadAttention(Widths(width, width, width, width), 1)
        self.read = mlp((width, 64, length), activation=relu)
        self.starts, self.asks = starts, asks

    def forward(self, words: Tensor) -> Tensor:
        """Logits of the counts 1, 2, …, length."""
        x = self.embed(words)
        if self.asks:
            found = self.attention(x[:, -1:], x, x)[:, 0]
        else:
            found = self.attention.answer(self.attention.value(x).mean(1))
        logits: Tensor = self.read(found)
        return logits

    def embed(self, words: Tensor) -> Tensor:
        start = self.embedding.num_embeddings - 1
        embedded: Tensor = self.embedding(pad(words, (1, 0), value=start) if self.starts else words)
        return embedded

    def loss(self, words: Tensor, counts: Tensor) -> Tensor:
        return cross_entropy(self(words), counts)

    def weights(self, words: Tensor) -> Tensor:
        """How the last letter shares its weight among the letters of the word, the start left out."""
        x = self.embed(words)
        weights = self.attention.weights(x[:, -1:], x)[:, 0, 0, -words.shape[1] :]
        return weights / weights.sum(1, keepdim=True)

    def scores(self) -> Tensor:
        """Of each letter and the start, for each letter that asks, less the mean over letters, which weights ignore."""
        x = self.embedding.weight
        scores = self.attention.query(x[:-1]) @ self.attention.key(x).mT / x.shape[1] ** 0.5
        centred: Tensor = scores - scores[:, :-1].mean(1, keepdim=True)
        return centred


@torch.no_grad()
def begin_alike(model: LastLetter) -> LastLetter:
    """Keys begin with the weights of queries, and scores as inner products: a letter's highest is mostly its own."""
    model.attention.key.load_state_dict(model.attention.query.state_dict())
    return model


@dataclass(frozen=True, eq=False)
class Matches:
    """Of words of length n: their last letter, how often it occurs, and the weight on all its places."""

    length: int
    last: Tensor
    count: Tensor
    weight: Tensor

    @classmethod
    def of(cls, model: LastLetter, words: Split) -> "Matches":
        equal = words.x == words.x[:, -1:]
        weight = (model.weights(words.x) * equal).sum(1)
        return cls(words.x.shape[1], words.x[:, -1].cpu(), equal.sum(1).cpu(), weight.cpu())

    def strengths(self, letters: int) -> Tensor:
        """λ of each last letter from the law turned round, log(w / (1 − w)) − log(c / (n − c)): medians over words."""
        odds = self.weight.logit(eps=1e-6) - (self.count / (self.length - self.count)).log()
        chosen = [odds[(self.last == letter) & (self.count < self.length)] for letter in range(letters)]
        return torch.stack([part.median() if len(part) else odds.new_zeros(()) for part in chosen])

    def law(self, strengths: Tensor) -> Tensor:
        return weight_on_matches(self.count, self.length, strengths[self.last])


def weight_on_matches(count: Tensor, length: int, strength: Tensor) -> Tensor:
    """c·e^λ / (c·e^λ + n − c): the weight on c matches of n letters that score λ above the rest (Diehl sec. 2.2)."""
    power = count * strength.exp()
    return power / (power + length - count)


def random_words(count: int, length: int, letters: int, *, seed: int) -> Split:
    """Words of random letters; y is how often the last letter occurs before the end, its count less 1."""
    words = torch.randint(letters, (count, length), generator=torch.Generator().manual_seed(seed))
    return Split(words, (words[:, :-1] == words[:, -1:]).sum(1))


def share_right(model: LastLetter, words: Split) -> float:
    assert words.y is not None
    return float((model(words.x).argmax(1) == words.y).float().mean())


def spelled(words: Tensor) -> list[str]:
    return ["".join(chr(ord("a") + letter) for letter in word) for word in words.tolist()]


def weight_figure(seen: Matches, strengths: Tensor, names: list[str]) -> "Figure":
    figure, axes = subplots(size=(6.8, 4.2))
    ax = axes[0, 0]
    beside = seen.count + 0.3 * (torch.rand(len(seen.count), generator=torch.Generator().manual_seed(0)) - 0.5)
    line = torch.linspace(0.5, seen.length, 200)
    for letter, (name, colour) in enumerate(zip(names, PALETTE, strict=False)):
        chosen = seen.last == letter
        ax.scatter(beside[chosen], seen.weight[chosen], s=8, color=colour, alpha=0.35, linewidths=0, rasterized=True)
        law = weight_on_matches(line, seen.length, strengths[letter])
        ax.plot(line, law, color=colour, linewidth=1.4, label=f"{name}, λ = {float(strengths[letter]):.2f}")
    ax.plot(line, line / seen.length, color=INK, linestyle=":", linewidth=1.2, label="λ = 0, all alike")
    ax.set(xlabel="occurrences c of the last letter", ylabel="weight on them", ylim=(0, 1.03))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(loc="lower right")
    return figure


def beginnings_figure(shares: dict[str, list[float]]) -> "Figure":
    figure, axes = subplots(size=(6.8, 2.6))
    ax = axes[0, 0]
    for row, (found, colour) in enumerate(zip(shares.values(), PALETTE, strict=False)):
        beside = torch.linspace(-0.22, 0.22, len(found)) if len(found) > 1 else torch.zeros(1)
        ax.scatter(found, row + beside, s=34, color=colour)
    ax.axvline(LEARNED, color=FAINT, linestyle="--", linewidth=1.2)
    ax.set_yticks(range(len(shares)), list(shares))
    ax.invert_yaxis()
    ax.set(xlabel="unseen words counted rightly", xlim=(0, 1.03))
    return figure
