"""The next token, guessed with and without a transformer, and what becomes of the embedding (book sec. 10.1.2)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.embedding import TokenEmbedding
from parnassus.attention.experiments.gpt import counted_pairs, cut, windows
from parnassus.attention.gpt import LanguageModel, rotary_gpt
from parnassus.data import open_text
from parnassus.optim import Adam
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.text.characters import CharacterTokeniser
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.2-11",)
expected = {
    "loss_with": at_most(2.1, "nats a character of unseen text, with blocks of attention"),
    "loss_without": at_least(2.3, "the same without: only the last character is known"),
    "counted_pairs": reported(
        "the same by counting which character comes after which: the least that is possible without"
    ),
    "together_with": reported(
        "how much nearer vowels lie to vowels than to consonants, by the transformer's embedding"
    ),
    "together_without": reported("the same by the other embedding"),
}
profiles = {"smoke": {"steps": 10, "batch": 4, "window": 16, "width": 16, "depth": 1}, "gpu": {"steps": 4_000}}

VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"


class LastToken(nn.Module):
    """Logits of the next token from the embedding of the last alone, by one dense layer: no attention."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocabulary, width)
        nn.init.normal_(self.embedding.tokens.weight, std=0.02)  # as the transformer's begins
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, vocabulary))

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p a token, in nats."""
        logits = self.layers(self.embedding(tokens[:, :-1]))
        return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


Model: TypeAlias = LanguageModel | LastToken


@dataclass(frozen=True)
class Experiment:
    text: str = "pydoc"  # what to learn: pydoc, tiny_shakespeare, moby_dick, names, or a text file of yours
    window: int = 64  # characters that the transformer can look back on
    width: int = 64  # numbers for each character
    depth: int = 2  # blocks of the transformer
    steps: int = 400  # gradient steps
    batch: int = 16  # windows a step
    lr: float = 3e-3  # Adam's learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        text = open_text(self.text)
        tokeniser = CharacterTokeniser.fit(text.train + text.test)
        train, test = (tokeniser.encode(part).to(run.device) for part in (text.train, text.test[:20_000]))
        size = tokeniser.vocabulary
        both: SideBySide[Model] = SideBySide(
            {
                "with attention": rotary_gpt(size, self.window, width=self.width, heads=4, depth=self.depth),
                "without": LastToken(size, self.width),
            }
        )
        both, optimizer = run.prepare(both, partial(Adam, lr=self.lr))
        pieces = cut(test, self.window)
        for step, loss in descend(run, both, optimizer, windows(train, self.window, size=self.batch, steps=self.steps)):
            run.log(step, loss=loss)
            if (step + 1) % max(1, self.steps // 10) == 0:
                found = losses(both, pieces)
                run.record(step, **{f"unseen/{name}": value for name, value in found.items()})
        found = losses(both, pieces)
        counted = counted_pairs(train, test, size)
        lines = {name: run.curve(f"unseen/{name}") for name in found}
        run.figure(
            "losses",
            curves({**lines, "counted pairs": ([0, self.steps], [counted] * 2)}, x_label="step", y_label="nats"),
            "Loss on unseen text. Without attention the model knows the last character only, and cannot do better than "
            "counting pairs; with attention it looks back.",
        )
        vectors = {name: embedding_of(model) for name, model in both.every()}
        run.figure(
            "embeddings",
            draw_embeddings(vectors, tokeniser),
            "The characters in the plane of the two leading principal components of each embedding. Without attention, "
            "characters with the same followers come together; with attention an embedding must also say of what use a "
            "character is further on.",
        )
        return {
            "loss_with": found["with attention"],
            "loss_without": found["without"],
            "counted_pairs": counted,
            "together_with": togetherness(vectors["with attention"], tokeniser),
            "together_without": togetherness(vectors["without"], tokeniser),
        }


@torch.no_grad()
def losses(both: SideBySide[Model], pieces: Int[Tensor, "piece window_and_one"]) -> dict[str, float]:
    """Nats a character of unseen text, by model."""
    return {name: float(model.loss(pieces)) for name, model in both.every()}


def embedding_of(model: Model) -> Float[Tensor, "vocabulary width"]:
    """The vectors of all tokens."""
    return model.embedding.tokens.weight.detach().cpu()


def togetherness(vectors: Float[Tensor, "vocabulary width"], tokeniser: CharacterTokeniser) -> float:
    """Mean distance of a vowel to a consonant over that to another vowel: 1 where they are not told apart."""
    vowels, consonants = (_of(vectors, tokeniser, letters) for letters in (VOWELS, CONSONANTS))
    if len(vowels) < 2 or not len(consonants):
        return 1.0
    among = torch.cdist(vowels, vowels).sum() / (len(vowels) * (len(vowels) - 1))
    return float(torch.cdist(vowels, consonants).mean() / among)


def draw_embeddings(vectors: dict[str, Float[Tensor, "_vocabulary _width"]], tokeniser: CharacterTokeniser) -> "Figure":
    """Letters, digits and marks at their places in two planes."""
    figure, axes = subplots(1, 2, size=(10.4, 4.8))
    kinds = (("vowels", VOWELS), ("consonants", CONSONANTS), ("digits", "0123456789"))
    for ax, (name, all_vectors) in zip(axes[0], vectors.items(), strict=True):
        shown = [letter for letter in VOWELS + CONSONANTS + "0123456789" + " .,\n" if letter in tokeniser.alphabet]
        x = _of(all_vectors, tokeniser, "".join(shown))
        x = x - x.mean(0)
        places = x @ torch.linalg.svd(x, full_matrices=False).Vh[:2].T
        ax.scatter(places[:, 0], places[:, 1], s=0)
        for letter, (across, up) in zip(shown, places.tolist(), strict=True):
            kind = next((index for index, (_, letters) in enumerate(kinds) if letter in letters), None)
            colour = INK if kind is None else PALETTE[kind]
            seen = {"\n": "⏎", " ": "␣"}.get(letter, letter)
            ax.text(across, up, seen, color=colour, ha="center", va="center", fontsize=11)
        ax.set(title=name, xticks=[], yticks=[])
        ax.grid(visible=False)
    for index, (named, _) in enumerate(kinds):
        axes[0, 1].scatter([], [], color=PALETTE[index], label=named)
    axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _of(vectors: Tensor, tokeniser: CharacterTokeniser, letters: str) -> Tensor:
    known = [letter for letter in letters if letter in tokeniser.alphabet]
    return vectors[tokeniser.encode("".join(known))]
