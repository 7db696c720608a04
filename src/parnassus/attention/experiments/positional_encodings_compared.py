"""Five positional encodings of a transformer compared, within and beyond the training length (Diehl sec. 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.models.gpt import LanguageModel
from parnassus.attention.positions.alibi import Alibi, alibi_bias, alibi_slopes
from parnassus.attention.positions.head_positions import HeadPositions
from parnassus.attention.positions.learned import PositionalEmbedding
from parnassus.attention.positions.relative import RelativePositions, relative_scores
from parnassus.attention.positions.rotary import Rotary, long_range_bound
from parnassus.attention.positions.sinusoidal import SinusoidalEmbedding, sinusoidal_encoding
from parnassus.data.seeds import derive_seed
from parnassus.layers.token_embedding import TokenEmbedding
from parnassus.optim import Adam
from parnassus.report import curves, subplots
from parnassus.report.formulas import to_mathtext
from parnassus.report.style import DIVERGING, SEQUENTIAL
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, between, descend

covers = ("D3.3", "D3.4", "D3.5", "B10.1-2", "B10.1-9", "B10.1.1-3")
expected = {
    "accuracy_trained_none": at_most(0.6, "accuracy at trained positions without positional encoding"),
    "accuracy_trained_learned": at_least(0.98, "accuracy at trained positions, learned embeddings"),
    "accuracy_trained_sinusoidal": at_least(0.9, "accuracy at trained positions, sinusoidal encodings"),
    "accuracy_trained_rotary": at_least(0.98, "accuracy at trained positions, rotary positions"),
    "accuracy_trained_relative": at_least(0.98, "accuracy at trained positions, relative attention"),
    "accuracy_trained_alibi": between(0.4, 0.9, "accuracy at trained positions, ALiBi"),
    "accuracy_extrapolated_none": at_most(
        0.5, "accuracy in the last quarter of the test sequences without positional encoding"
    ),
    "accuracy_extrapolated_learned": at_most(
        0.3, "accuracy in the last quarter of the test sequences, learned embeddings"
    ),
    "accuracy_extrapolated_sinusoidal": at_most(
        0.6, "accuracy in the last quarter of the test sequences, sinusoidal encodings"
    ),
    "accuracy_extrapolated_rotary": at_most(
        0.6, "accuracy in the last quarter of the test sequences, rotary positions"
    ),
    "accuracy_extrapolated_relative": at_least(
        0.97, "accuracy in the last quarter of the test sequences, relative attention"
    ),
    "accuracy_extrapolated_alibi": between(0.3, 0.9, "accuracy in the last quarter of the test sequences, ALiBi"),
}
profiles = {
    "smoke": {"steps": 3, "max_length": 64, "num_test": 8},
    "gpu": {"steps": 4_000, "batch_size": 256, "width": 64, "max_length": 512, "num_test": 512},
}

TITLES = {
    "none": "none",
    "learned": "learned",
    "sinusoidal": "sinusoidal",
    "rotary": "rotary",
    "relative": "relative",
    "alibi": "ALiBi",
}


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 400  # gradient steps of each model
    batch_size: Positive[int] = 32  # sequences per gradient step, new ones at every step
    length: Positive[int] = 32  # tokens of a training sequence
    max_length: Positive[int] = 128  # tokens of a test sequence
    distance: Positive[int] = 3  # distance from a position to the token it predicts
    vocab_size: Positive[int] = 8  # number of tokens
    width: Positive[int] = 32  # width of the transformers, which have two blocks of four heads
    learning_rate: Positive[float] = 5e-3  # peak learning rate of Adam, after 10 % of the steps
    num_test: Positive[int] = 64  # test sequences

    def __call__(self, run: Run) -> dict[str, float]:
        models, optimizer, schedule = run.prepare(
            ModelCollection[DelayedCopyModel]({name: self.model(name) for name in TITLES}),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        batches = RandomTokens(self.vocab_size, self.length, self.batch_size, self.steps, run.device)
        for step, loss in descend(run, models, optimizer, batches):
            schedule.step()
            run.log(step, loss=loss / len(TITLES))

        test = RandomTokens(self.vocab_size, self.max_length, self.num_test, 1, run.device).at(
            0, derive_seed(run.seed, -1), 0, 1
        )
        correct = {
            name: model.is_correct(test).float().mean(0).cpu() for name, model in models.named_models()
        }  # by position
        plot_extrapolation(run, correct, self.length, self.distance)
        plot_attention(run, models, test[:, : self.length])
        plot_encodings(run, models, self.length)
        near, far = slice(0, self.length - self.distance), slice(-(self.max_length // 4), None)
        accuracies = {name: (float(line[near].mean()), float(line[far].mean())) for name, line in correct.items()}
        run.table(
            "accuracy",
            [
                {"encoding": TITLES[name], "trained positions": values[0], "last quarter": values[1]}
                for name, values in accuracies.items()
            ],
            f"Accuracy at positions within the training length of {self.length} tokens, and in the last quarter of "
            f"{self.max_length} tokens. Chance is {1 / self.vocab_size:.3f}.",
        )
        run.note(
            "results",
            f"The task is to predict the token {self.distance} positions before. Encodings with one direction for each "
            "distance are learned quickly. Beyond the training length, learned embeddings are untrained; sinusoidal "
            "and rotary encodings reach phases that were not trained; relative attention has one vector for all long "
            "distances and remains exact. ALiBi only penalises distance, so it cannot select one position among its "
            "neighbours, but its accuracy does not depend on the length.",
        )
        return {
            f"accuracy_{positions}_{name}": values[i]
            for i, positions in enumerate(("trained", "extrapolated"))
            for name, values in accuracies.items()
        }

    def model(self, name: str) -> "DelayedCopyModel":
        """The same two blocks with one positional encoding."""
        heads, depth = 4, 2
        embeddings: dict[str, Callable[[], TokenEmbedding | PositionalEmbedding]] = {
            "learned": lambda: PositionalEmbedding(self.vocab_size, self.max_length, self.width),
            "sinusoidal": lambda: SinusoidalEmbedding(self.vocab_size, self.width),
        }
        head_positions: dict[str, Callable[[], HeadPositions]] = {
            "rotary": lambda: Rotary(self.width // heads, self.max_length),
            "relative": lambda: RelativePositions(heads, self.width // heads, self.length),
            "alibi": lambda: Alibi(heads),
        }
        embedding = embeddings.get(name, lambda: TokenEmbedding(self.vocab_size, self.width))()
        for table in embedding.children():
            nn.init.normal_(cast("nn.Embedding", table).weight, std=self.width**-0.5)
        blocks = [
            Block(
                SelfAttention(
                    self.width, heads, causal=True, positions=head_positions[name]() if name in head_positions else None
                ),
                feed_forward(self.width, 2 * self.width, activation=nn.GELU),
                norm=partial(nn.LayerNorm, self.width),
            )
            for _ in range(depth)
        ]
        return DelayedCopyModel(LanguageModel(embedding, blocks, window=self.max_length), self.distance)


class DelayedCopyModel(nn.Module):
    """A transformer that predicts at every position the token `distance` positions before."""

    def __init__(self, transformer: LanguageModel, distance: int) -> None:
        super().__init__()
        self.transformer, self.distance = transformer, distance

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits at every position that has a target."""
        logits: Tensor = self.transformer(tokens)
        return logits[:, self.distance :]

    def loss(self, tokens: Tensor) -> Tensor:
        """The mean of −log p per token, in nats."""
        return cross_entropy(self(tokens).flatten(0, 1), tokens[:, : -self.distance].flatten())

    @torch.no_grad()
    def is_correct(self, tokens: Tensor) -> Tensor:
        """Whether the prediction is correct, by sequence and position; the first position is `distance`."""
        predicted: Tensor = self(tokens).argmax(-1)
        return predicted == tokens[:, : -self.distance]


@dataclass(frozen=True)
class RandomTokens:
    """Batches of independent uniform tokens, new at every step."""

    vocabulary: int
    length: int
    size: int
    steps: int
    device: torch.device

    def __len__(self) -> int:
        return self.steps

    def at(self, step: int, seed: int, rank: int, world_size: int) -> Tensor:
        generator = torch.Generator().manual_seed(derive_seed(seed, step, rank))
        shape = max(1, self.size // world_size), self.length
        return torch.randint(self.vocabulary, shape, generator=generator).to(self.device)


def plot_extrapolation(run: Run, correct: dict[str, Tensor], length: int, distance: int) -> None:
    """Accuracy by position in groups of eight, aligned with the training length."""
    lines, skipped = {}, (length - distance) % 8
    for name, values in correct.items():
        groups = values[skipped:].unfold(0, 8, 8)
        lines[TITLES[name]] = (distance + skipped + 3.5 + 8 * torch.arange(len(groups)), groups.mean(1))
    run.figure(
        "length extrapolation",
        curves(lines, x_label="position", y_label="accuracy", marks={"training length": length}),
        f"Accuracy by position. Training sequences have {length} tokens; a causal model has the same outputs up to "
        "there in longer sequences, and its accuracy beyond depends on the positional encoding.",
    )


def plot_attention(run: Run, models: "ModelCollection[DelayedCopyModel]", tokens: Tensor) -> None:
    """For each model the head with the largest weight on the target, mean over sequences."""
    figure, axes = subplots(2, 3, size=(9.6, 6.4))
    for ax, (name, model) in zip(axes.flat, models.named_models(), strict=True):
        maps = torch.cat([weights.mean(0) for weights in attention_maps(model.transformer, tokens).values()]).cpu()
        target_weight = maps.diagonal(-model.distance, 1, 2).mean(1)  # by head
        ax.imshow(maps[int(target_weight.argmax())].numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
        ax.set(title=f"{TITLES[name]}: {float(target_weight.max()):.2f}", xticks=[], yticks=[])
        ax.grid(visible=False)
    axes[0, 0].set(ylabel="query")
    axes[1, 0].set(ylabel="query", xlabel="key")
    run.figure(
        "attention maps",
        figure,
        "Mean attention weights over test sequences for the head with the largest weight on the target (the number). "
        f"A line {models.model('none').distance} positions below the diagonal means that one head solves the task.",
    )


@torch.no_grad()
def plot_encodings(run: Run, models: "ModelCollection[DelayedCopyModel]", length: int) -> None:
    """The contribution of each encoding to the score of two positions, independent of the tokens."""
    table = cast("PositionalEmbedding", models.model("learned").transformer.embedding).positions.weight[:length].cpu()
    encoding = sinusoidal_encoding(torch.arange(length, dtype=torch.float32), 64)
    ones = Rotary(64, length).rotate(torch.ones(1, 1, length, 64), 0)[0, 0]
    distance = models.model("relative").distance
    block = cast("Block", models.model("relative").transformer.blocks[0])
    tables = cast("RelativePositions", block.attention.positions).table.cpu()
    query = tables[:, distance][None, :, None].expand(1, -1, length, -1)
    scores = relative_scores(query, tables, length)[0]
    best_head = int(scores[:, -1, -1 - distance].argmax())
    images = {
        "learned: ⟨p_m, p_n⟩": table @ table.T,
        "sinusoidal: ⟨pe_m, pe_n⟩": encoding @ encoding.T,
        "rotary: ⟨R_m 1, R_n 1⟩": ones @ ones.T,
        f"relative: ⟨e_{distance}, e_{{m−n}}⟩": scores[best_head],
        "ALiBi: −|m − n| / 4": alibi_bias(alibi_slopes(4), length)[0],
    }
    figure, axes = subplots(1, 5, size=(11.5, 2.7))
    for ax, (title, image) in zip(axes.flat, images.items(), strict=True):
        limit = float(image.abs().max())
        ax.imshow(image.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit)
        ax.set(title=to_mathtext(title), xticks=[], yticks=[])
        ax.grid(visible=False)
    axes[0, 0].set(ylabel="m", xlabel="n")
    run.figure(
        "positional scores",
        figure,
        f"Scores of positions m and n by the encoding alone, for {length} positions; red is positive, blue negative. "
        "The learned embeddings are those after training. Sinusoidal and rotary scores depend on m − n only. Relative "
        "attention is shown for the query that matches the target distance, ALiBi for its first head.",
    )
    distances = torch.arange(257, dtype=torch.float64)
    bounds = {f"heads of width {width}": long_range_bound(distances, width) for width in (32, 128, 512)}
    run.figure(
        "rotary decay",
        curves(
            {name: (distances, bound / bound[0]) for name, bound in bounds.items()},
            x_label="distance m − n",
            y_label="upper bound of the score, relative to distance 0",
        ),
        "Upper bound of the score of two rotated vectors against their distance (Su et al. 2021). It decays because "
        "the rotations of different frequencies lose their phase coherence.",
    )
