"""Decoding strategies: sampling, top-k, top-p and beam search compared (book sec. 9.2; Holtzman et al. 2020)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.data import open_text
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.text import CharacterTokeniser, NGramModel, beam_search, generate, keep_top_p, token_sampler
from parnassus.train import BuiltIn, NonNegative, Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B9.2-9", "B9.2-10", "B9.2-11", "B9.3-14", "B9.3-16", "Z9.4")
expected = {
    "test_perplexity": at_most(5.5, "perplexity per character of test text"),
    "beam_advantage": at_least(0.5, "log p per character of the widest beam's text minus that of human text, in nats"),
    "beam_repeats": at_least(0.4, "fraction of character 12-grams that occurred before, widest beam search"),
    "greedy_repeats": at_least(0.4, "fraction of character 12-grams that occurred before, greedy decoding"),
    "sampled_repeats": at_most(0.1, "fraction of character 12-grams that occurred before, sampling at temperature 1"),
    "human_repeats": at_most(0.1, "fraction of character 12-grams that occurred before, human test text"),
    "sampled_words": no_band("fraction of words that occur in the training text, sampling at temperature 1"),
    "top_p_gain": at_least(0.02, "fraction of words that occur in the training text, top-p 0.9 minus temperature 1"),
    "temperature_2_words": at_most(0.6, "fraction of words that occur in the training text, sampling at temperature 2"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"order": 3, "num_prompts": 2, "max_new_tokens": 40, "num_beams": (1, 2)},
    "gpu": {
        "text": "moby_dick",
        "order": 8,
        "num_prompts": 64,
        "max_new_tokens": 400,
        "num_beams": (1, 2, 4, 8, 16, 32),
    },
}

TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
TOP_K = (2, 3, 5, 10, 20)
TOP_P = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
NGRAM_LENGTH, PROMPT_LENGTH = 12, 24  # characters of the n-grams that are counted, and of each prompt
SHOWN = ("human text", "temperature 0.5", "temperature 1", "temperature 2", "top-k 3", "top-p 0.9")


@dataclass(frozen=True)
class Experiment:
    text: Annotated[str, BuiltIn("pydoc", "tiny_shakespeare", "moby_dick")] = "pydoc"  # name or path of a training text
    order: Positive[int] = 6  # order of the n-gram model
    smoothing: NonNegative[float] = 6.0  # weight ε of the next lower order
    num_prompts: Positive[int] = 16  # prompts from test text
    max_new_tokens: Positive[int] = 200  # characters generated after each prompt
    num_beams: tuple[Positive[int], ...] = (1, 2, 4, 8, 16)  # beam widths

    def __call__(self, run: Run) -> dict[str, float]:
        if self.max_new_tokens < NGRAM_LENGTH:
            raise ValueError(
                f"max_new_tokens must be at least {NGRAM_LENGTH}; got max_new_tokens={self.max_new_tokens}"
            )
        text = open_text(self.text)
        tokeniser = CharacterTokeniser.fit(text.train + text.test)
        train, test = tokeniser.encode(text.train), tokeniser.encode(text.test)
        model = NGramModel.fit_interpolated(
            train, self.order, vocabulary=tokeniser.vocabulary, smoothing=self.smoothing
        )
        known = set(find_words(text.train))
        excerpts = evenly_spaced_excerpts(test, self.num_prompts, PROMPT_LENGTH + self.max_new_tokens)
        prompts = excerpts[:, :PROMPT_LENGTH]

        def evaluate(texts: Tensor) -> TextStatistics:
            log_probs = model.token_log_probs(torch.cat([prompts, texts], 1))[:, PROMPT_LENGTH:]
            decoded = [tokeniser.decode(row) for row in texts]
            return TextStatistics(
                float(log_probs.mean()), repeated_fraction(decoded), known_word_fraction(decoded, known), decoded[0]
            )

        human = evaluate(excerpts[:, PROMPT_LENGTH:])
        samplers = build_samplers(torch.Generator().manual_seed(run.seed))
        generated = generate(
            model, prompts.repeat(len(samplers), 1), batch_samplers(list(samplers.values())), self.max_new_tokens
        )
        sampled = {name: evaluate(rows) for name, rows in zip(samplers, generated.chunk(len(samplers)), strict=True)}
        searched = {}
        for width in self.num_beams:
            result = beam_search(model, prompts, width=width, length=self.max_new_tokens)
            rows = [result.best(row).tokens for row in range(len(prompts))]
            searched[f"beam search, width {width}"] = evaluate(torch.tensor(rows))

        run.figure(
            "likelihood and quality",
            plot_trade_off({**sampled, **searched}, human),
            "Each decoding strategy by the mean log-likelihood of its text under the model. Left: fraction of the text "
            "that is not repeated; right: fraction of known words. The star is human test text: it is far less likely "
            "than what beam search finds, because the most likely text is repetitive. Larger dots: higher "
            "temperature, larger k, larger p, larger beam width.",
        )
        run.figure(
            "nucleus sizes",
            plot_nucleus_sizes(model, test[: 20 * self.max_new_tokens]),
            "Number of characters in the nucleus at each position of test text: one or two inside a word, a dozen or "
            "more at its beginning. No fixed k fits both.",
        )
        widest, greedy = (searched[f"beam search, width {width}"] for width in (self.num_beams[-1], self.num_beams[0]))
        shown = {"human text": human, **sampled, **searched}
        run.table(
            "generated text",
            [
                {"strategy": name, "log p per character": round(each.log_prob, 2), "text": each.sample[:110]}
                for name, each in shown.items()
                if name in SHOWN or each in (greedy, widest)
            ],
            "Continuations of the same prompt: “" + tokeniser.decode(prompts[0]).replace("\n", " ") + "”.",
        )
        run.note(
            "likelihood and repetition",
            f"Text of the widest beam is {widest.log_prob - human.log_prob:.2f} nats per character more likely than "
            f"human text, but {widest.repeats:.0%} of it is repeated, against {human.repeats:.0%} of human text. A "
            "better search gives worse text, because the most probable text is not typical. Sampling gives typical "
            "text, and top-p or top-k filtering removes unlikely characters.",
        )
        return {
            "test_perplexity": float(model.perplexity(test)),
            "beam_advantage": widest.log_prob - human.log_prob,
            "beam_repeats": widest.repeats,
            "greedy_repeats": greedy.repeats,
            "sampled_repeats": sampled["temperature 1"].repeats,
            "human_repeats": human.repeats,
            "sampled_words": sampled["temperature 1"].words,
            "top_p_gain": sampled["top-p 0.9"].words - sampled["temperature 1"].words,
            "temperature_2_words": sampled["temperature 2"].words,
        }


@dataclass(frozen=True)
class TextStatistics:
    """Mean log p per character, fraction repeated, fraction of known words, and one text."""

    log_prob: float
    repeats: float
    words: float
    sample: str


def build_samplers(generator: torch.Generator) -> dict[str, Callable[[Tensor], Tensor]]:
    return {
        **{f"temperature {each:g}": token_sampler(temperature=each, generator=generator) for each in TEMPERATURES},
        **{f"top-k {each}": token_sampler(top_k=each, generator=generator) for each in TOP_K},
        **{f"top-p {each:g}": token_sampler(top_p=each, generator=generator) for each in TOP_P},
    }


def batch_samplers(samplers: list[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    """One sampler for a batch that is split evenly among several."""
    return lambda logits: torch.cat(
        [sampler(rows) for sampler, rows in zip(samplers, logits.chunk(len(samplers)), strict=True)]
    )


def evenly_spaced_excerpts(tokens: Int[Tensor, " time"], count: int, length: int) -> Int[Tensor, "count length"]:
    """Excerpts of the text at evenly spaced positions."""
    if len(tokens) < length:
        raise ValueError(f"the test text must have at least {length} characters; got {len(tokens)}")
    starts = torch.linspace(0, len(tokens) - length, count).long()
    return torch.stack([tokens[start : start + length] for start in starts.tolist()])


def repeated_fraction(texts: list[str]) -> float:
    """Fraction of all character 12-grams that occurred before in one of these texts."""
    ngrams = [text[start : start + NGRAM_LENGTH] for text in texts for start in range(len(text) - NGRAM_LENGTH + 1)]
    return 1 - len(set(ngrams)) / len(ngrams)


def find_words(text: str) -> list[str]:
    """Complete words, without those at the ends of the text."""
    return re.findall(r"(?<=[^a-z])[a-z]+(?=[^a-z])", text.lower())


def known_word_fraction(texts: list[str], known: set[str]) -> float:
    is_known = [word in known for text in texts for word in find_words(text)]
    return sum(is_known) / max(1, len(is_known))


def plot_nucleus_sizes(model: NGramModel, tokens: Int[Tensor, " time"]) -> "Figure":
    """Distribution of the number of characters in the nucleus along a text."""
    contexts = tokens.unfold(0, model.order - 1, 1)[:-1]
    logits: Float[Tensor, "time vocabulary"] = model.distribution(contexts).log()
    number = torch.arange(1, 31)
    fractions = {}
    for top_p in (0.5, 0.9, 0.95):
        sizes = (keep_top_p(logits, top_p) > -torch.inf).sum(1)
        fractions[f"p = {top_p}"] = number, (sizes[:, None] <= number).double().mean(0)
    return curves(fractions, x_label="characters", y_label="cumulative fraction of nuclei")


def plot_trade_off(strategies: dict[str, TextStatistics], human: TextStatistics) -> "Figure":
    families = {
        "temperature": [each for name, each in strategies.items() if name.startswith("temp")],
        "top-k": [each for name, each in strategies.items() if name.startswith("top-k")],
        "top-p": [each for name, each in strategies.items() if name.startswith("top-p")],
        "beam search": [each for name, each in strategies.items() if name.startswith("beam")],
    }
    figure, axes = subplots(1, 2, size=(10.0, 4.2))
    _plot(axes[0, 0], families, human, lambda each: 1 - each.repeats)
    _plot(axes[0, 1], families, human, lambda each: each.words)
    axes[0, 0].set(xlabel="log p per character (nats)", ylabel="fraction not repeated", ylim=(-0.05, 1.1))
    axes[0, 1].set(xlabel="log p per character (nats)", ylabel="fraction of known words", ylim=(-0.05, 1.1))
    axes[0, 0].legend(loc="lower left")
    return figure


def _plot(
    ax: "Axes",
    families: dict[str, list[TextStatistics]],
    human: TextStatistics,
    value: Callable[[TextStatistics], float],
) -> None:
    for (name, family), colour in zip(families.items(), PALETTE, strict=False):
        x, y = [each.log_prob for each in family], [value(each) for each in family]
        ax.plot(x, y, color=colour, linewidth=1, label=name)
        ax.scatter(x, y, s=[15 + 12 * index for index in range(len(family))], color=colour, linewidths=0)
    ax.axvline(human.log_prob, color=FAINT, linestyle="--", linewidth=1)
    ax.scatter([human.log_prob], [value(human)], marker="*", s=170, color=INK, zorder=3, label="human text")
