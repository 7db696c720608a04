"""Byte-pair encoding: first merges and compression against vocabulary size (book sec. 9.5; Sennrich et al. 2016)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from jaxtyping import Int
from torch import Tensor

from parnassus.data import open_text
from parnassus.report import bar_chart, curves
from parnassus.setting_types import TextData
from parnassus.text import BytePairTokeniser, NGramModel, WordTokeniser, learn_merges
from parnassus.text.byte_pair_merges import count_words, merge_pair_in_words
from parnassus.text.tokeniser import show_whitespace
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B9.5-7", "B9.2-12")
expected = {
    "characters_per_token": at_least(3.0, "characters per token of test text, largest vocabulary"),
    "lossless": between(1.0, 1.0, "1 if every text is decoded exactly"),
    "library_agreement": between(1.0, 1.0, "fraction of the merges of `learn_merges` that equal those of the library"),
    "unknown_words": at_least(0.01, "fraction of test words unknown to a word tokeniser of the same size"),
    "bits_single": at_most(3.8, "bits per character of test text under a unigram model, largest vocabulary"),
    "bits_bytes": no_band("bits per character of test text under a unigram model of single bytes"),
    "whole_words": at_least(0.3, "fraction of test words that are one token, largest vocabulary"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"vocab_sizes": (256, 400), "reference_vocab_size": 260, "reference_characters": 1_000},
    "gpu": {"text": "moby_dick", "vocab_sizes": (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768)},
}
UNUSUAL = "Straße, naïve, Ωμέγα, 你好, 😀\u200d\u0301\x00"  # unlike the training text


@dataclass(frozen=True)
class Experiment:
    text: TextData = "pydoc"  # training text: a built-in name or a text file
    vocab_sizes: tuple[Positive[int], ...] = (256, 300, 400, 600, 1_000, 1_500, 2_500, 4_000)  # vocabulary sizes
    reference_vocab_size: Positive[int] = 320  # vocabulary size for the comparison with `learn_merges`
    reference_characters: Positive[int] = 20_000  # characters of training text for that comparison

    def __call__(self, run: Run) -> dict[str, float]:
        text = open_text(self.text)
        if len(text.test) < 100:
            raise ValueError(f"the held-out tenth of the text must have at least 100 characters; got {len(text.test)}")
        largest = BytePairTokeniser.fit(text.train, max(self.vocab_sizes))
        tokenisers = [BytePairTokeniser(largest.merges[: size - 256]) for size in self.vocab_sizes]  # merges are nested
        train, test = ([each.encode(part) for each in tokenisers] for part in (text.train, text.test))
        lossless = all(each.decode(each.encode(part)) == part for each in tokenisers for part in (text.test, UNUSUAL))

        sizes = [each.vocabulary for each in tokenisers]
        ratio = {
            "training text": (sizes, [len(text.train) / len(tokens) for tokens in train]),
            "test text": (sizes, [len(text.test) / len(tokens) for tokens in test]),
        }
        figure = curves(ratio, x_label="tokens in the vocabulary", y_label="characters per token", log_x=True)
        run.figure(
            "compression",
            figure,
            "With bytes alone a character is about one token. Every merge shortens the text; late merges are rare "
            "words and shorten test text less.",
        )
        bits = [bits_per_character(*parts, len(text.test)) for parts in zip(train, test, sizes, strict=True)]
        run.figure(
            "bits per character",
            curves({"unigram model": (sizes, [unigram for unigram, _ in bits]),
                    "bigram model": (sizes, [bigram for _, bigram in bits])},
                   x_label="tokens in the vocabulary", y_label="bits per character of test text", log_x=True),
            "Bits per character of test text under unigram and bigram models of the tokens. With a larger vocabulary a "
            "token covers more characters, until tokens are too rare for reliable counts.",
        )  # fmt: skip
        run.figure("first merges", plot_first_merges(text.train, largest), "The first merged pairs, by the number of "
                   "occurrences of the new token when it is created; ␣ is a space.")  # fmt: skip
        run.table("test sentence", sentence_table(text.test, tokenisers), "The same words under growing vocabularies.")

        part = text.train[: self.reference_characters]
        reference, library = (
            learn_merges(part, self.reference_vocab_size),
            BytePairTokeniser.fit(part, self.reference_vocab_size).merges,
        )
        matches = sum(a == b for a, b in zip(reference, library, strict=False))
        words = WordTokeniser.fit(text.train, max_words=max(self.vocab_sizes))
        unknown = (words.encode(text.test) == words.special.index("<unknown>")).double().mean()
        single = [len(largest.encode(f" {word}")) == 1 for word in set(words.decode(words.encode(text.test)).split())]
        run.note(
            "unknown words",
            f"{float(unknown):.1%} of the test words are unknown to a tokeniser of {max(self.vocab_sizes):,} words. "
            "Byte pairs encode all of them, if necessary byte by byte, and also text in other scripts: "
            f"“{UNUSUAL[:24]}” has {len(tokenisers[-1].encode(UNUSUAL))} tokens, most of them single bytes.",
        )
        return {
            "characters_per_token": ratio["test text"][1][-1],
            "lossless": float(lossless),
            "library_agreement": matches / max(len(reference), len(library)),
            "unknown_words": float(unknown),
            "bits_single": bits[-1][0],
            "bits_bytes": bits[0][0],
            "whole_words": sum(single) / len(single),
        }


def bits_per_character(
    train: Int[Tensor, " time"], test: Int[Tensor, " test_time"], vocabulary: int, characters: int
) -> tuple[float, float]:
    """−log₂ p of the test tokens per character, under a unigram and a bigram model."""
    single = NGramModel.fit(train, 1, vocabulary=vocabulary, smoothing=1.0)
    pair = NGramModel.fit(train, 2, vocabulary=vocabulary, smoothing=20.0, lower=single)
    values = [-float(model.log_prob(test[None])) / log(2) / characters for model in (single, pair)]
    return values[0], values[1]


def plot_first_merges(text: str, tokeniser: BytePairTokeniser, count: int = 12) -> "Figure":
    """Number of occurrences of each of the first new tokens when it is created."""
    words, occurrences = count_words(text), {}
    for pair in tokeniser.merges[:count]:
        words = merge_pair_in_words(words, pair)
        token = pair[0] + pair[1]
        occurrences[show_whitespace(token.decode(errors="replace"))] = float(
            sum(frequency * word.count(token) for word, frequency in words.items())
        )
    return bar_chart(occurrences, x_label="occurrences in the text")


def sentence_table(text: str, tokenisers: list[BytePairTokeniser]) -> list[dict[str, str | float]]:
    """The first words of the text as tokens of each tokeniser."""
    sentence = text[text.find(" ") :][:60].rsplit(" ", 1)[0].replace("\n", " ")
    rows: list[dict[str, str | float]] = []
    for tokeniser in tokenisers:
        tokens = [tokeniser.tokens[token] for token in tokeniser.encode(sentence).tolist()]
        pieces = " | ".join(show_whitespace(token.decode(errors="replace")) for token in tokens)
        rows.append({"vocabulary": float(tokeniser.vocabulary), "tokens": float(len(tokens)), "pieces": pieces})
    return rows
