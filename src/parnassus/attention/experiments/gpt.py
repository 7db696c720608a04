"""GPT learns to write like a text of yours, one token after another (book sec. 10.1.1).

Train: parnassus run gpt --text my.txt. Let it write: parnassus sample last --prompt "Call me". For three minutes of
training on two cores: parnassus run gpt --text tiny_shakespeare --steps 2000.
"""

import lzma
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import log
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim import AdamW  # ours, in parnassus.optim, has no fused kernel: 3 % of a step
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.gpt import rotary_gpt
from parnassus.attention.maps import attention_maps
from parnassus.attention.writer import Writer
from parnassus.data import Batches, DataError, open_text
from parnassus.optim import clip_gradients, decay_groups
from parnassus.report import INK, PALETTE, bars, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.text.byte_pairs import BytePairTokeniser
from parnassus.text.characters import CharacterTokeniser
from parnassus.text.choosing import chooser
from parnassus.text.tokeniser import Tokeniser, tell_unknown, tokeniser_facts, tokeniser_from_facts
from parnassus.text.visible import visible
from parnassus.text.words import WordTokeniser
from parnassus.train import Run, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.1-8", "B10.1.1-10", "B10.1.1-11", "B10.1.2-14")
expected = {
    "test_loss": at_most(1.8, "−log p of a token of unseen text, in nats"),
    "train_loss": reported("the same of text it has learned from"),
    "bits_a_character": at_most(2.6, "bits that a character of unseen text costs"),
    "pairs_of_tokens": reported("bits a character when only the token before is known, by counting"),
    "xz": reported("bits a character when the text is compressed by xz after the text learned from"),
    "parameters": reported("numbers that are learned"),
    "training_seconds": reported("from the start of the run to the end of its training"),
}
profiles = {
    "smoke": {"steps": 10, "batch": 4, "window": 32, "width": 32, "depth": 2, "unseen": 2_000},
    "gpu": {
        "text": "tiny_shakespeare", "steps": 2_000, "batch": 64, "window": 256, "width": 512, "heads": 8, "depth": 6,
        "dropout": 0.4, "lr": 1e-3,
    },
}  # fmt: skip

SHOWN = 48
"""Tokens of unseen text in the pictures."""
PROMPTS = {"with a little courage": 0.8, "as it has learned": 1.0}
"""Samples in the report, and their temperatures."""


@dataclass(frozen=True)
class Experiment:
    text: str = "pydoc"  # what to learn: pydoc, tiny_shakespeare, moby_dick, names, or a text file of yours
    tokens: Literal["characters", "byte_pairs", "words"] = "characters"  # what the text is cut into
    vocabulary: int = 1_000  # how many tokens there are at most; characters are as many as occur
    window: int = 128  # tokens that it can look back on
    width: int = 128  # numbers for each token, in every layer
    heads: int = 4  # of attention, side by side
    depth: int = 4  # blocks, one upon the other
    dropout: float = 0.0  # share of numbers dropped in training
    steps: int = 400  # gradient steps
    batch: int = 8  # windows a step
    lr: float = 3e-3  # AdamW's largest learning rate, reached after a tenth of the steps
    unseen: int = 200_000  # characters of unseen text that are used at most

    def model(self, tokens: dict[str, object]) -> Writer:
        tokeniser = tokeniser_from_facts(tokens)
        model = rotary_gpt(
            tokeniser.vocabulary,
            self.window,
            width=self.width,
            heads=self.heads,
            depth=self.depth,
            dropout=self.dropout,
        )
        return Writer(model, tokeniser)

    def __call__(self, run: Run) -> dict[str, float]:
        text = open_text(self.text)
        unseen = text.test[: self.unseen]
        tokeniser = self.tokeniser(text.train, text.train + unseen)
        train, test = (tokeniser.encode(part).to(run.device) for part in (text.train, unseen))
        batches = windows(train, self.window, size=self.batch, steps=self.steps)
        pieces, learned = cut(test, self.window), cut(train[: len(test)], self.window)

        writer = run.build(self.model, tokens=tokeniser_facts(tokeniser))
        writer, optimizer = run.prepare(
            writer, lambda _: AdamW(decay_groups(writer, 0.1), lr=self.lr, betas=(0.9, 0.99), fused=True)
        )
        optimizer.register_step_pre_hook(clipping(writer))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, writer, optimizer, batches):
            warming.step()
            run.log(step, loss=loss)
            if (step + 1) % max(1, self.steps // 8) == 0:
                run.record(step, unseen_loss=mean_loss(writer, pieces[:: -(-len(pieces) // 64)]))
        seconds = run.seconds

        writer.eval()
        test_loss = mean_loss(writer, pieces)
        a_character = (len(test) - 1) / len(unseen) / log(2)
        bits = {
            "pairs of tokens": counted_pairs(train, test, tokeniser.vocabulary) * a_character,
            "xz": compressed(text.train, unseen),
            "this model": test_loss * a_character,
        }
        run.figure(
            "price",
            bars(bits, x_label="bits a character of unseen text"),
            "What a character of unseen text costs: by counting pairs, by a compressor that has the whole text learned "
            "from before it and copies from it, and by the model, which has to remember.",
        )
        passage = next_line(unseen)
        show_reading(run, writer, tokeniser.encode(passage).to(run.device))
        show_writing(run, writer, passage)
        return {
            "test_loss": test_loss,
            "train_loss": mean_loss(writer, learned),
            "bits_a_character": bits["this model"],
            "pairs_of_tokens": bits["pairs of tokens"],
            "xz": bits["xz"],
            "parameters": float(sum(parameter.numel() for parameter in writer.parameters())),
            "training_seconds": seconds,
        }

    def tokeniser(self, train: str, whole: str) -> Tokeniser:
        """One learned from `train`; of the whole text only the alphabet must be known."""
        if self.tokens == "byte_pairs":
            return BytePairTokeniser.fit(train, self.vocabulary)
        if self.tokens == "words":
            return WordTokeniser.fit(train, most=self.vocabulary)
        return CharacterTokeniser.fit(whole)


@dataclass(frozen=True)
class Sample:
    prompt: str = ""  # how the text begins; - reads it from standard input
    length: int = 300  # tokens to write
    temperature: float = 0.8  # below 1 it dares less, above 1 more; 0 always takes the likeliest
    top_k: int | None = None  # choose among this many of the likeliest tokens
    top_p: float | None = None  # choose among the likeliest tokens that have this much probability together

    def write(self, model: Writer) -> Iterator[str]:
        choose = chooser(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)
        prompt = sys.stdin.read().rstrip("\n") if self.prompt == "-" else self.prompt
        tell_unknown(model.tokeniser, prompt)
        return chain([prompt] if prompt else [], model.write(prompt, choose, self.length))


def windows(tokens: Int[Tensor, " time"], window: int, *, size: int, steps: int) -> Batches[Tensor]:
    """Batches of `size` parts of a text, each of window + 1 tokens; all places where one can begin come in turn."""
    if window < 1:
        raise ValueError(f"a window must hold at least one token; got window={window}")
    if len(tokens) <= window:
        raise DataError(
            f"the text is too short: it has {len(tokens)} tokens to learn from, and a window of {window} needs "
            f"{window + 1}; try a smaller --window"
        )
    reach = torch.arange(window + 1, device=tokens.device)
    return Batches(
        lambda rows: tokens[rows[:, None] + reach], len(tokens) - window, size=size, steps=steps, device=tokens.device
    )


def clipping(model: nn.Module) -> Callable[..., None]:
    """A hook for an optimiser: no gradient is longer than 1."""

    def clip(*_: object) -> None:
        clip_gradients(model.parameters(), 1.0)

    return clip


def cut(tokens: Int[Tensor, " time"], window: int) -> Int[Tensor, "piece window_and_one"]:
    """A text as pieces of window + 1 tokens, each beginning with the last token of the one before."""
    if len(tokens) < 2:
        raise DataError(f"the text is too short: {len(tokens)} tokens are kept to be tested on, and 2 are needed")
    return tokens.unfold(0, min(window + 1, len(tokens)), min(window, len(tokens)))


@torch.no_grad()
def mean_loss(writer: Writer, pieces: Int[Tensor, "piece window_and_one"]) -> float:
    """The mean of −log p over all tokens of these pieces but the first of each, in nats."""
    training = writer.training
    writer.eval()
    total = sum(float(writer.loss(part)) * len(part) for part in pieces.split(64))
    writer.train(training)
    return total / len(pieces)


def counted_pairs(train: Int[Tensor, " time"], test: Int[Tensor, " unseen"], vocabulary: int) -> float:
    """Nats a token of `test` when p(b | a) is how often b came after a in `train`, with a tenth of a count added."""
    pairs = torch.bincount(train[:-1] * vocabulary + train[1:], minlength=vocabulary**2).view(vocabulary, vocabulary)
    chance = (pairs + 0.1) / (pairs.sum(1, keepdim=True) + 0.1 * vocabulary)
    return float(-chance[test[:-1], test[1:]].log().mean())


def compressed(train: str, test: str) -> float:
    """Bits a character that xz needs for `test` once it has seen `train`."""
    before, both = (len(lzma.compress(part.encode(), preset=9)) for part in (train, train + test))
    return 8 * (both - before) / len(test)


def next_line(text: str) -> str:
    """From where the first new line begins; all of a text that has only one."""
    rest = text.partition("\n")[2].strip()
    return rest if len(rest) >= SHOWN else text


@torch.no_grad()
def show_reading(run: Run, writer: Writer, passage: Int[Tensor, " time"]) -> None:
    """How surprised it is by an unseen line, and where its heads look meanwhile."""
    tokens = passage[: min(SHOWN, writer.model.window + 1)]
    names = [writer.tokeniser.decode(token[None].cpu()) for token in tokens]
    surprise = writer.model.nll(tokens[None])[0].cpu() / log(2)
    run.figure(
        "surprise",
        draw_surprise(names[1:], surprise),
        "Unseen text, token by token, and how many bits each costs the model that has read all before it: the "
        "beginning of a word is hard to guess, its end easy.",
    )
    run.figure(
        "attention",
        draw_maps(list(attention_maps(writer, tokens[None, :-1]).values())),
        "Where each head of each block looks while that text is read. A row is a place in the text, columns what it "
        "looks at: nothing lies above the diagonal, for that is the future.",
    )


def show_writing(run: Run, writer: Writer, passage: str) -> None:
    """What it writes after the first words of an unseen passage."""
    prompt = " ".join(passage.split()[:3])
    for name, temperature in PROMPTS.items():
        torch.manual_seed(run.seed)
        written = "".join(Sample(prompt, length=400, temperature=temperature).write(writer))
        run.text(name, written, f"It was given “{prompt}” and chose each token at temperature {temperature:g}.")


def draw_surprise(names: list[str], bits: Float[Tensor, " time"]) -> "Figure":
    """A bar for each token, over the token."""
    figure, axes = subplots(size=(9.6, 2.6))
    ax = axes[0, 0]
    ax.bar(range(len(names)), bits.numpy(), color=PALETTE[0], width=0.8)
    turned = 90 if max(map(len, names)) > 2 else 0
    ax.set_xticks(range(len(names)), [visible(name).replace("$", "\\$") for name in names], fontsize=8, rotation=turned)
    ax.set(ylabel="bits", xlim=(-0.8, len(names) - 0.2))
    ax.grid(visible=False, axis="x")
    return figure


def draw_maps(maps: list[Float[Tensor, "1 _heads _time _time"]]) -> "Figure":
    """One small picture for each head, a row of them for each block."""
    depth, heads = min(len(maps), 6), min(maps[0].shape[1], 6)
    figure, axes = subplots(depth, heads, size=(1.75 * heads, 1.8 * depth))
    for row, weights in zip(axes, maps, strict=False):
        for ax, head in zip(row, weights[0].cpu(), strict=False):
            ax.imshow(head.sqrt().numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)  # the root shows small weights too
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
    for number, row in enumerate(axes):
        row[0].set_ylabel(f"block {number + 1}", color=INK)
    for number, ax in enumerate(axes[0]):
        ax.set_title(f"head {number + 1}", fontsize=9)
    return figure
