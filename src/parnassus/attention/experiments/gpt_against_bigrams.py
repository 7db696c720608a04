"""Next-character prediction by a GPT and by a bigram network, and their embeddings (book sec. 10.1.2)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.models.gpt import LanguageModel, rotary_gpt
from parnassus.data import open_text
from parnassus.data.preparation.token_windows import split_windows, window_batches
from parnassus.layers.token_embedding import TokenEmbedding
from parnassus.optim import Adam
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.setting_types import TextData
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.ngrams import NGramModel
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.2-11",)
expected = {
    "loss_gpt": at_most(2.1, "test loss in nats per character, GPT"),
    "loss_bigram": at_least(2.3, "test loss in nats per character, network that receives the last character only"),
    "loss_counts": no_band(
        "test loss in nats per character, bigram counts with add-0.1 smoothing: the limit without attention"
    ),
    "vowel_separation_gpt": no_band("ratio of mean vowel-consonant to mean vowel-vowel distance, GPT embedding"),
    "vowel_separation_bigram": no_band(
        "ratio of mean vowel-consonant to mean vowel-vowel distance, bigram network embedding"
    ),
}
profiles = {
    "smoke": {"steps": 10, "batch_size": 4, "block_size": 16, "width": 16, "num_layers": 1},
    "gpu": {"steps": 4_000},
}

TITLES = {"gpt": "GPT", "bigram": "bigram network"}
VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"


class BigramNetwork(nn.Module):
    """Logits of the next token from the embedding of the last token, by an MLP without attention."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocabulary, width)
        nn.init.normal_(self.embedding.tokens.weight, std=0.02)  # as in the transformer
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, vocabulary))

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p per token, in nats."""
        logits = self.layers(self.embedding(tokens[:, :-1]))
        return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


Model: TypeAlias = LanguageModel | BigramNetwork


@dataclass(frozen=True)
class Experiment:
    text: TextData = "pydoc"  # training text: name of a built-in text, or path of a file
    block_size: Positive[int] = 64  # context length of the transformer in characters
    width: Positive[int] = 64  # width of embeddings and layers
    num_layers: Positive[int] = 2  # transformer blocks
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 16  # windows per gradient step
    learning_rate: Positive[float] = 3e-3  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        text = open_text(self.text)
        tokeniser = CharacterTokeniser.fit(text.train + text.test)
        train, test = (tokeniser.encode(part).to(run.device) for part in (text.train, text.test[:20_000]))
        size = tokeniser.vocabulary
        models: ModelCollection[Model] = ModelCollection(
            {
                "gpt": rotary_gpt(size, self.block_size, width=self.width, heads=4, depth=self.num_layers),
                "bigram": BigramNetwork(size, self.width),
            }
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        test_windows = split_windows(test, self.block_size)
        batches = window_batches(train, self.block_size, size=self.batch_size, steps=self.steps)
        for step, loss in descend(run, models, optimizer, batches):
            run.log(step, loss=loss)
            if (step + 1) % max(1, self.steps // 10) == 0:
                values = evaluate_losses(models, test_windows)
                run.record(step, **{f"test_loss/{name}": value for name, value in values.items()})
        losses = evaluate_losses(models, test_windows)
        counts = NGramModel.fit(train, 2, vocabulary=size, smoothing=0.1 * size)
        count_loss = -float(counts.token_log_probs(test[None])[0, 1:].mean())
        lines = {TITLES[name]: run.curve(f"test_loss/{name}") for name in losses}
        run.figure(
            "losses",
            curves(
                {**lines, "bigram counts": ([0, self.steps], [count_loss] * 2)},
                x_label="step",
                y_label="test loss (nats per character)",
            ),
            "Loss on the test text. A network that receives only the last character is limited by the bigram "
            "statistics; attention makes use of the whole context.",
        )
        vectors = {name: embedding_matrix(model) for name, model in models.named_models()}
        run.figure(
            "embeddings",
            plot_embeddings({TITLES[name]: matrix for name, matrix in vectors.items()}, tokeniser),
            "Characters in the plane of the first two principal components of each embedding. In the bigram network "
            "characters with similar successors are close; with attention the embedding also encodes information for "
            "later predictions.",
        )
        return {
            **{f"loss_{name}": loss for name, loss in losses.items()},
            "loss_counts": count_loss,
            **{f"vowel_separation_{name}": vowel_separation(matrix, tokeniser) for name, matrix in vectors.items()},
        }


@torch.no_grad()
def evaluate_losses(models: ModelCollection[Model], windows: Int[Tensor, "window window_and_one"]) -> dict[str, float]:
    """Test loss in nats per character, by model."""
    return {name: float(model.loss(windows)) for name, model in models.named_models()}


def embedding_matrix(model: Model) -> Float[Tensor, "vocabulary width"]:
    """The embedding vectors of all tokens."""
    return model.embedding.tokens.weight.detach().cpu()


def vowel_separation(vectors: Float[Tensor, "vocabulary width"], tokeniser: CharacterTokeniser) -> float:
    """The ratio of mean vowel-consonant to mean vowel-vowel distance: 1 if they are not separated."""
    vowels, consonants = (_select(vectors, tokeniser, letters) for letters in (VOWELS, CONSONANTS))
    if len(vowels) < 2 or not len(consonants):
        return 1.0
    among_vowels = torch.cdist(vowels, vowels).sum() / (len(vowels) * (len(vowels) - 1))
    return float(torch.cdist(vowels, consonants).mean() / among_vowels)


def plot_embeddings(vectors: dict[str, Float[Tensor, "_vocabulary _width"]], tokeniser: CharacterTokeniser) -> "Figure":
    """Characters at their principal components, a panel for each embedding."""
    figure, axes = subplots(1, 2, size=(10.4, 4.8))
    kinds = (("vowels", VOWELS), ("consonants", CONSONANTS), ("digits", "0123456789"))
    for ax, (name, all_vectors) in zip(axes[0], vectors.items(), strict=True):
        characters = [letter for letter in VOWELS + CONSONANTS + "0123456789" + " .,\n" if letter in tokeniser.alphabet]
        x = _select(all_vectors, tokeniser, "".join(characters))
        x = x - x.mean(0)
        points = x @ torch.linalg.svd(x, full_matrices=False).Vh[:2].T
        ax.scatter(points[:, 0], points[:, 1], s=0)
        for character, point in zip(characters, points.tolist(), strict=True):
            kind = next((index for index, (_, letters) in enumerate(kinds) if character in letters), None)
            colour = INK if kind is None else PALETTE[kind]
            label = {"\n": "⏎", " ": "␣"}.get(character, character)
            ax.text(*point, label, color=colour, ha="center", va="center", fontsize=11)
        ax.set(title=name, xticks=[], yticks=[])
        ax.grid(visible=False)
    for index, (kind_name, _) in enumerate(kinds):
        axes[0, 1].scatter([], [], color=PALETTE[index], label=kind_name)
    axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _select(vectors: Tensor, tokeniser: CharacterTokeniser, letters: str) -> Tensor:
    known = [letter for letter in letters if letter in tokeniser.alphabet]
    return vectors[tokeniser.encode("".join(known))]
