"""Five ways to tell a transformer where things stand, on one task and far beyond its training length (Diehl sec. 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.alibi import Alibi, alibi_bias, alibi_slopes
from parnassus.attention.block import Block, feed_forward
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.gpt import LanguageModel
from parnassus.attention.head_positions import HeadPositions
from parnassus.attention.maps import attention_maps
from parnassus.attention.relative import RelativePositions, relative_scores
from parnassus.attention.rotary import Rotary, long_range_bound
from parnassus.attention.self_attention import SelfAttention
from parnassus.attention.sinusoidal import SinusoidalEmbedding, sinusoidal
from parnassus.data.seeds import mix
from parnassus.optim import Adam
from parnassus.report import curves, subplots
from parnassus.report.formulas import with_scripts
from parnassus.report.ink import DIVERGING, SEQUENTIAL
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend

if TYPE_CHECKING:
    pass

covers = ("D3.3", "D3.4", "D3.5", "B10.1-2", "B10.1-9", "B10.1.1-3")
expected = {
    "near_none": at_most(0.6, "share of right answers at trained places without positions"),
    "near_learned": at_least(0.98, "the same with a learned table"),
    "near_waves": at_least(0.9, "the same with sines and cosines"),
    "near_rotary": at_least(0.98, "the same with rotary positions"),
    "near_relative": at_least(0.98, "the same with relative attention"),
    "near_alibi": between(0.4, 0.9, "the same with ALiBi"),
    "far_none": at_most(0.5, "share of right answers at the last quarter of the longest sequences without positions"),
    "far_learned": at_most(0.3, "the same with a learned table"),
    "far_waves": at_most(0.6, "the same with sines and cosines"),
    "far_rotary": at_most(0.6, "the same with rotary positions"),
    "far_relative": at_least(0.97, "the same with relative attention"),
    "far_alibi": between(0.3, 0.9, "the same with ALiBi"),
}
profiles = {
    "smoke": {"steps": 3, "longest": 64, "judged": 8},
    "gpu": {"steps": 4_000, "batch": 256, "width": 64, "longest": 512, "judged": 512},
}

TITLES = {
    "none": "none",
    "learned": "learned table",
    "waves": "sines and cosines",
    "rotary": "rotary",
    "relative": "relative",
    "alibi": "ALiBi",
}


@dataclass(frozen=True)
class Experiment:
    steps: int = 400  # gradient steps of each model
    batch: int = 32  # sequences a step, drawn anew each time
    length: int = 32  # tokens of a sequence in training
    longest: int = 128  # tokens of a sequence in the test
    distance: int = 3  # how many places back the answer stands
    vocabulary: int = 8  # different tokens
    width: int = 32  # of the transformers, which have two layers of four heads
    lr: float = 5e-3  # Adam's largest learning rate, reached after a tenth of the steps
    judged: int = 64  # sequences of the test

    def __call__(self, run: Run) -> dict[str, float]:
        side, optimizer = run.prepare(
            SideBySide[Recall]({name: self.model(name) for name in TITLES}), partial(Adam, lr=self.lr)
        )
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        batches = RandomTokens(self.vocabulary, self.length, self.batch, self.steps, run.device)
        for step, loss in descend(run, side, optimizer, batches):
            warming.step()
            run.log(step, loss=loss / len(TITLES))

        test = RandomTokens(self.vocabulary, self.longest, self.judged, 1, run.device).at(0, mix(run.seed, -1), 0, 1)
        right = {name: model.right(test).float().mean(0).cpu() for name, model in side.every()}  # by place
        show_reach(run, right, self.length, self.distance)
        show_maps(run, side, test[:, : self.length])
        show_schemes(run, side, self.length)
        near, far = slice(0, self.length - self.distance), slice(-(self.longest // 4), None)
        shares = {name: (float(share[near].mean()), float(share[far].mean())) for name, share in right.items()}
        run.table(
            "schemes",
            [
                {"positions": TITLES[name], "right, trained places": share[0], "right, far beyond": share[1]}
                for name, share in shares.items()
            ],
            f"Guessing gives {1 / self.vocabulary:.3f}. Far beyond: the last quarter of {self.longest} places, after "
            f"training on {self.length}.",
        )
        run.note(
            "what to see",
            f"The task is to say which token stood {self.distance} places before. Where a scheme offers one direction "
            "for one distance, a head learns it at once. What happens beyond the trained length is another question: "
            "a learned table has rows there which were never trained; waves and rotations come into phases that the "
            "heads have never met; relative attention has one vector for all long distances and stays exact. ALiBi "
            "only fines distance, so it cannot pick one place among its neighbours, but what it can do it does at any "
            "length.",
        )
        return {
            f"{where}_{name}": share[i] for i, where in enumerate(("near", "far")) for name, share in shares.items()
        }

    def model(self, name: str) -> "Recall":
        """The same two blocks, with the one kind of positions."""
        heads, depth = 4, 2
        embeddings: dict[str, Callable[[], TokenEmbedding | PositionalEmbedding]] = {
            "learned": lambda: PositionalEmbedding(self.vocabulary, self.longest, self.width),
            "waves": lambda: SinusoidalEmbedding(self.vocabulary, self.width),
        }
        inside: dict[str, Callable[[], HeadPositions]] = {
            "rotary": lambda: Rotary(self.width // heads, self.longest),
            "relative": lambda: RelativePositions(heads, self.width // heads, self.length),
            "alibi": lambda: Alibi(heads),
        }
        embedding = embeddings.get(name, lambda: TokenEmbedding(self.vocabulary, self.width))()
        for table in embedding.children():
            nn.init.normal_(cast("nn.Embedding", table).weight, std=self.width**-0.5)
        blocks = [
            Block(
                SelfAttention(self.width, heads, causal=True, positions=inside[name]() if name in inside else None),
                feed_forward(self.width, 2 * self.width, activation=nn.GELU),
                norm=partial(nn.LayerNorm, self.width),
            )
            for _ in range(depth)
        ]
        return Recall(LanguageModel(embedding, blocks, window=self.longest), self.distance)


class Recall(nn.Module):
    """A transformer that says at every place which token stood `distance` places before."""

    def __init__(self, reader: LanguageModel, distance: int) -> None:
        super().__init__()
        self.reader, self.distance = reader, distance

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits at every place that has an answer."""
        logits: Tensor = self.reader(tokens)
        return logits[:, self.distance :]

    def loss(self, tokens: Tensor) -> Tensor:
        return cross_entropy(self(tokens).flatten(0, 1), tokens[:, : -self.distance].flatten())

    @torch.no_grad()
    def right(self, tokens: Tensor) -> Tensor:
        """Whether the answer is right, by sequence and place; the first has place `distance`."""
        answers: Tensor = self(tokens).argmax(-1)
        return answers == tokens[:, : -self.distance]


@dataclass(frozen=True)
class RandomTokens:
    """Batches of sequences without any pattern, drawn anew at every step."""

    vocabulary: int
    length: int
    size: int
    steps: int
    device: torch.device

    def __len__(self) -> int:
        return self.steps

    def at(self, step: int, seed: int, rank: int, world: int) -> Tensor:
        source = torch.Generator().manual_seed(mix(seed, step, rank))
        shape = max(1, self.size // world), self.length
        return torch.randint(self.vocabulary, shape, generator=source).to(self.device)


def show_reach(run: Run, right: dict[str, Tensor], length: int, distance: int) -> None:
    """Shares of right answers by place, in groups of eight places of which one begins where training ended."""
    lines, skipped = {}, (length - distance) % 8
    for name, share in right.items():
        groups = share[skipped:].unfold(0, 8, 8)
        lines[TITLES[name]] = (distance + skipped + 3.5 + 8 * torch.arange(len(groups)), groups.mean(1))
    run.figure(
        "beyond the trained length",
        curves(lines, x_label="place in the sequence", y_label="share of right answers", marks={"trained": length}),
        f"Training ends at {length} places. A causal model that reads a longer sequence is the same up to there; what "
        "it does afterwards depends on how it was told where things stand.",
    )


def show_maps(run: Run, side: "SideBySide[Recall]", tokens: Tensor) -> None:
    """Of each model the head that looks most at the answer, averaged over sequences."""
    figure, axes = subplots(2, 3, size=(9.6, 6.4))
    for ax, (name, model) in zip(axes.flat, side.every(), strict=True):
        maps = torch.cat([weights.mean(0) for weights in attention_maps(model.reader, tokens).values()]).cpu()
        answered = maps.diagonal(-model.distance, 1, 2).mean(1)  # the weight on the answer, by head
        ax.imshow(maps[int(answered.argmax())].numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
        ax.set(title=f"{TITLES[name]}: {float(answered.max()):.2f}", xticks=[], yticks=[])
        ax.grid(visible=False)
    axes[0, 0].set(ylabel="query")
    axes[1, 0].set(ylabel="query", xlabel="key")
    run.figure(
        "the head that looks back",
        figure,
        "Mean attention weights over test sequences, of the head with most weight on the answer (the number). A line "
        f"{side.one('none').distance} places below the diagonal is the task solved by one head.",
    )


@torch.no_grad()
def show_schemes(run: Run, side: "SideBySide[Recall]", length: int) -> None:
    """What each scheme says about a pair of places before any content is known."""
    table = cast("PositionalEmbedding", side.one("learned").reader.embedding).places.weight[:length].cpu()
    code = sinusoidal(torch.arange(length, dtype=torch.float32), 64)
    ones = Rotary(64, length).turn(torch.ones(1, 1, length, 64), 0)[0, 0]
    distance = side.one("relative").distance
    block = cast("Block", side.one("relative").reader.blocks[0])
    tables = cast("RelativePositions", block.attention.positions).table.cpu()
    query = tables[:, distance][None, :, None].expand(1, -1, length, -1)
    scores = relative_scores(query, tables, length)[0]
    own = int(scores[:, -1, -1 - distance].argmax())
    pictures = {
        "learned: ⟨p_m, p_n⟩": table @ table.T,
        "waves: ⟨pe_m, pe_n⟩": code @ code.T,
        "rotary: ⟨R_m 1, R_n 1⟩": ones @ ones.T,
        f"relative: ⟨e_{distance}, e_{{m−n}}⟩": scores[own],
        "ALiBi: −|m − n| / 4": alibi_bias(alibi_slopes(4), length)[0],
    }
    figure, axes = subplots(1, 5, size=(11.5, 2.7))
    for ax, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
        limit = float(picture.abs().max())
        ax.imshow(picture.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit)
        ax.set(title=with_scripts(title), xticks=[], yticks=[])
        ax.grid(visible=False)
    axes[0, 0].set(ylabel="m", xlabel="n")
    run.figure(
        "what the schemes say",
        figure,
        f"For {length} places: red is above zero, blue below. The learned table as trained; waves and rotations have "
        "bands parallel to the diagonal, for they know m − n alone; relative attention for a query that asks for the "
        "answer's distance; ALiBi's first head.",
    )
    distances = torch.arange(257, dtype=torch.float64)
    bounds = {f"heads of width {width}": long_range_bound(distances, width) for width in (32, 128, 512)}
    run.figure(
        "rotary decay",
        curves(
            {name: (distances, bound / bound[0]) for name, bound in bounds.items()},
            x_label="distance m − n",
            y_label="bound on the score, 1 at distance 0",
        ),
        "How large a score two rotated vectors can have at a distance (Su et al. 2021): hands of clocks that start "
        "together drift apart, and the more of them, the less they meet again.",
    )
