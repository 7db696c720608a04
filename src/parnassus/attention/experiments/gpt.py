"""GPT: a causal transformer is trained on a text and generates new text token by token (book sec. 10.1.1).

Train on a text file: parnassus run gpt --text my.txt. Generate: parnassus sample last --prompt "Call me". About three
minutes of training on two cores: parnassus run gpt --text tiny_shakespeare --steps 2000.
"""

import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from math import exp, log
from typing import TYPE_CHECKING, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim import AdamW  # parnassus.optim.AdamW has no fused kernel, which saves 3 % of a step
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.models.gpt import rotary_gpt
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.data import open_text
from parnassus.data.preparation.token_windows import split_windows, window_batches
from parnassus.optim import clip_gradients, weight_decay_groups
from parnassus.report import INK, PALETTE, bar_chart, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.setting_types import Text, TextData
from parnassus.text.byte_pair_tokeniser import BytePairTokeniser
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.ngrams import NGramModel
from parnassus.text.sampling import token_sampler
from parnassus.text.tokeniser import (
    Tokeniser,
    show_whitespace,
    tokeniser_from_dict,
    tokeniser_to_dict,
    warn_unknown_words,
)
from parnassus.text.word_tokeniser import WordTokeniser
from parnassus.train import NonNegative, Positive, Run, UnitInterval, at_most, descend, no_band
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.1-8", "B10.1.1-10", "B10.1.1-11", "B10.1.2-14")
expected = {
    "test_loss": at_most(1.8, "negative log-likelihood per token of the test text, in nats"),
    "train_loss": no_band("negative log-likelihood per token of the training text, in nats"),
    "bits_per_character": at_most(2.6, "bits per character of the test text"),
    "bigrams": no_band("bits per character of a bigram model with add-0.1 smoothing"),
    "xz": no_band("bits per character of xz, with the training text as context"),
    "parameters": no_band("number of parameters"),
    "training_seconds": no_band("training time in seconds"),
}
profiles = {
    "smoke": {"steps": 10, "batch_size": 4, "block_size": 32, "width": 32, "num_layers": 2, "num_test": 2_000},
    "gpu": {
        "text": "tiny_shakespeare", "steps": 2_000, "batch_size": 64, "block_size": 256, "width": 512, "num_heads": 8,
        "num_layers": 6, "dropout": 0.4, "learning_rate": 1e-3,
    },
}  # fmt: skip

FIGURE_TOKENS = 48  # tokens of test text in the figures
TEMPERATURES = (0.8, 1.0)  # of the samples in the report


@dataclass(frozen=True)
class Experiment:
    text: TextData = "pydoc"  # training text: name of a built-in text, or path of a file
    tokenizer: Literal["characters", "byte_pairs", "words"] = "characters"  # tokenisation
    vocab_size: Positive[int] = 1_000  # maximum number of tokens; all characters are kept
    block_size: Positive[int] = 128  # context length in tokens
    width: Positive[int] = 128  # width of embeddings and layers
    num_heads: Positive[int] = 4  # attention heads per layer
    num_layers: Positive[int] = 4  # transformer blocks
    dropout: UnitInterval = 0.0  # dropout probability
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 8  # windows per gradient step
    learning_rate: Positive[float] = 3e-3  # peak learning rate of AdamW, after 10 % of the steps
    num_test: Positive[int] = 200_000  # maximum number of characters of test text

    def model(self, tokens: dict[str, object]) -> TextGenerator:
        tokeniser = tokeniser_from_dict(tokens)
        model = rotary_gpt(
            tokeniser.vocabulary,
            self.block_size,
            width=self.width,
            heads=self.num_heads,
            depth=self.num_layers,
            dropout=self.dropout,
        )
        return TextGenerator(model, tokeniser)

    def __call__(self, run: Run) -> dict[str, float]:
        text = open_text(self.text)
        test_text = text.test[: self.num_test]
        tokeniser = self.fit_tokeniser(text.train, text.train + test_text)
        train, test = (tokeniser.encode(part).to(run.device) for part in (text.train, test_text))
        batches = window_batches(train, self.block_size, size=self.batch_size, steps=self.steps)
        test_windows = split_windows(test, self.block_size)
        train_windows = split_windows(train[: len(test)], self.block_size)

        generator = run.build(self.model, tokens=tokeniser_to_dict(tokeniser))
        generator, optimizer, schedule = run.prepare(
            generator,
            lambda _: AdamW(weight_decay_groups(generator, 0.1), lr=self.learning_rate, betas=(0.9, 0.99), fused=True),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        optimizer.register_step_pre_hook(clipping_hook(generator))
        for step, loss in descend(run, generator, optimizer, batches):
            schedule.step()
            run.log(step, loss=loss)
            if (step + 1) % max(1, self.steps // 8) == 0:
                run.record(step, test_loss=mean_loss(generator, test_windows[:: -(-len(test_windows) // 64)]))
        seconds = run.seconds

        generator.eval()
        test_loss = mean_loss(generator, test_windows)
        bits_per_nat = (len(test) - 1) / len(test_text) / log(2)  # nats per token to bits per character
        bits = {
            "bigrams": bigram_loss(train, test, tokeniser.vocabulary) * bits_per_nat,
            "xz": xz_bits(text.train, test_text),
            "GPT": test_loss * bits_per_nat,
        }
        run.figure(
            "compression",
            bar_chart(bits, x_label="bits per character of test text"),
            "Bits per character of the test text under a bigram model, xz with the training text as context, and GPT.",
        )
        passage = skip_first_line(test_text)
        plot_predictions(run, generator, tokeniser.encode(passage).to(run.device))
        report_samples(run, generator, passage)
        return {
            "test_loss": test_loss,
            "train_loss": mean_loss(generator, train_windows),
            "bits_per_character": bits["GPT"],
            "bigrams": bits["bigrams"],
            "xz": bits["xz"],
            "parameters": float(sum(parameter.numel() for parameter in generator.parameters())),
            "training_seconds": seconds,
        }

    def fit_tokeniser(self, train: str, full_text: str) -> Tokeniser:
        """A tokeniser fitted to `train`; characters are collected from `full_text`."""
        if self.tokenizer == "byte_pairs":
            return BytePairTokeniser.fit(train, self.vocab_size)
        if self.tokenizer == "words":
            return WordTokeniser.fit(train, max_words=self.vocab_size)
        return CharacterTokeniser.fit(full_text)


@dataclass(frozen=True)
class Sample:
    prompt: Text = ""  # beginning of the text; - reads it from standard input
    max_new_tokens: Positive[int] = 300  # number of tokens to generate
    temperature: NonNegative[float] = 0.8  # softmax temperature; 0 is greedy decoding
    top_k: Positive[int] | None = None  # sample from the k most probable tokens
    top_p: UnitInterval | None = None  # nucleus sampling: smallest set of tokens with this total probability

    def write(self, model: TextGenerator) -> Iterator[str]:
        sampler = token_sampler(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)
        prompt = sys.stdin.read().rstrip("\n") if self.prompt == "-" else self.prompt
        warn_unknown_words(model.tokeniser, prompt)
        return chain([prompt] if prompt else [], model.generate(prompt, sampler, self.max_new_tokens))

    def compile_layers(self, model: TextGenerator) -> None:
        model.model.compile_hidden()


@dataclass(frozen=True)
class Evaluate:
    text: TextData = "pydoc"  # evaluation text: name of a built-in text, or path of a file
    full_text: bool = False  # evaluate on the full text instead of its held-out last 10 %

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        text = open_text(self.text)
        test = text.train + text.test if self.full_text else text.test
        return [self.evaluate(trained, test) for trained in runs]

    def evaluate(self, trained: TrainedRun, text: str) -> ResultRow:
        """Negative log-likelihood and perplexity of one run, without characters that its tokeniser cannot encode."""
        generator = cast("TextGenerator", trained.model)
        if isinstance(generator.tokeniser, CharacterTokeniser):
            alphabet = set(generator.tokeniser.alphabet)
            known = "".join(character for character in text if character in alphabet)
        else:
            known = text
        tokens = generator.tokeniser.encode(known)
        nats = mean_loss(generator, split_windows(tokens, generator.model.window))
        return {
            "run": trained.folder.path.name,
            "text": self.text,
            "nats_per_token": nats,
            "perplexity": exp(nats),
            "bits_per_character": nats * (len(tokens) - 1) / len(known) / log(2),
            "removed_characters": len(text) - len(known),
        }


def clipping_hook(model: nn.Module) -> Callable[..., None]:
    """A pre-step hook for an optimiser that clips the gradient norm to 1."""

    def clip(*_: object) -> None:
        clip_gradients(model.parameters(), 1.0)

    return clip


@torch.no_grad()
def mean_loss(generator: TextGenerator, windows: Int[Tensor, "window window_and_one"]) -> float:
    """The mean of −log p over all tokens of the windows but the first of each, in nats."""
    training = generator.training
    generator.eval()
    total = sum(float(generator.loss(batch)) * len(batch) for batch in windows.split(64))
    generator.train(training)
    return total / len(windows)


def bigram_loss(train: Int[Tensor, " time"], test: Int[Tensor, " test_time"], vocabulary: int) -> float:
    """Nats per token of `test` under a bigram model of `train` with add-0.1 smoothing."""
    model = NGramModel.fit(train, 2, vocabulary=vocabulary, smoothing=0.1 * vocabulary)
    return -float(model.token_log_probs(test[None])[0, 1:].mean())


def xz_bits(train: str, test: str) -> float:
    """Bits per character of `test` appended to `train` and compressed with xz."""
    train_size, total_size = (len(lzma.compress(part.encode(), preset=9)) for part in (train, train + test))
    return 8 * (total_size - train_size) / len(test)


def skip_first_line(text: str) -> str:
    """The text after its first line break, or the whole text if little follows."""
    rest = text.partition("\n")[2].strip()
    return rest if len(rest) >= FIGURE_TOKENS else text


@torch.no_grad()
def plot_predictions(run: Run, generator: TextGenerator, passage: Int[Tensor, " time"]) -> None:
    """Negative log-likelihoods and attention maps on a test passage."""
    tokens = passage[: min(FIGURE_TOKENS, generator.model.window + 1)]
    names = [generator.tokeniser.decode(token[None].cpu()) for token in tokens]
    bits = generator.model.nll(tokens[None])[0].cpu() / log(2)
    run.figure(
        "negative log-likelihood",
        plot_token_bits(names[1:], bits),
        "Negative log-likelihood of each token of a test passage given all previous "
        f"tokens{compare_word_starts(names, bits)}.",
    )
    run.figure(
        "attention maps",
        plot_attention_maps(list(attention_maps(generator, tokens[None, :-1]).values())),
        "Attention maps of all heads and blocks on the same passage, rows are queries and columns keys. Entries above "
        "the diagonal are masked.",
    )


def compare_word_starts(names: Sequence[str], bits: Float[Tensor, " time"]) -> str:
    """The mean bits of tokens that begin a word and of the others, if there are both."""
    starts = torch.tensor([begins_word(now, before) for before, now in pairwise(names)])
    if not bool(starts.any()) or bool(starts.all()):
        return ""
    first, others = (float(bits[chosen].mean()) for chosen in (starts, ~starts))
    return f": {first:.2f} bits at the beginning of words, {others:.2f} elsewhere"


def begins_word(token: str, before: str) -> bool:
    """Whether a token is or contains the first letter of a word."""
    after_space = before[-1:].isspace() and token[:1].isalpha()
    return after_space or (token[:1].isspace() and token.strip()[:1].isalpha())


def report_samples(run: Run, generator: TextGenerator, passage: str) -> None:
    """Continuations of the first three words of a test passage."""
    prompt = " ".join(passage.split()[:3])
    for temperature in TEMPERATURES:
        torch.manual_seed(run.seed)
        text = "".join(Sample(prompt, max_new_tokens=400, temperature=temperature).write(generator))
        run.text(f"sample at temperature {temperature:g}", text, f"Continuation of the prompt “{prompt}”.")


def plot_token_bits(names: list[str], bits: Float[Tensor, " time"]) -> "Figure":
    """A bar for each token."""
    figure, axes = subplots(size=(9.6, 2.6))
    ax = axes[0, 0]
    ax.bar(range(len(names)), bits.numpy(), color=PALETTE[0], width=0.8)
    rotation = 90 if max(map(len, names)) > 2 else 0
    ax.set_xticks(
        range(len(names)), [show_whitespace(name).replace("$", "\\$") for name in names], fontsize=8, rotation=rotation
    )
    ax.set(ylabel="−log₂ p (bits)", xlim=(-0.8, len(names) - 0.2))
    ax.grid(visible=False, axis="x")
    return figure


def plot_attention_maps(maps: list[Float[Tensor, "1 _heads _time _time"]]) -> "Figure":
    """A panel for each head, a row of panels for each block."""
    depth, heads = min(len(maps), 6), min(maps[0].shape[1], 6)
    figure, axes = subplots(depth, heads, size=(1.75 * heads, 1.8 * depth))
    for row, weights in zip(axes, maps, strict=False):
        for ax, head in zip(row, weights[0].cpu(), strict=False):
            ax.imshow(head.sqrt().numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)  # the root makes small weights visible
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
    for index, row in enumerate(axes, 1):
        row[0].set_ylabel(f"block {index}", color=INK)
    for index, ax in enumerate(axes[0], 1):
        ax.set_title(f"head {index}", fontsize=9)
    return figure
