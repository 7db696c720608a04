"""Byte pairs: which are merged first, and how short a text becomes (book sec. 9.5; Sennrich et al. 2016)."""

from collections import Counter
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from jaxtyping import Int
from torch import Tensor

from parnassus.data import open_text
from parnassus.report import bars, curves
from parnassus.text import BytePairTokeniser, NGrams, WordTokeniser, learn_merges
from parnassus.text.merges import PIECES, merged
from parnassus.text.visible import visible
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B9.5-7", "B9.2-12")
expected = {
    "characters_a_token": at_least(3.0, "characters that a token stands for in unseen text, largest vocabulary"),
    "loses_nothing": between(1.0, 1.0, "1 if every text comes back as it was"),
    "the_same_by_library": between(1.0, 1.0, "share of the merges learned in plain terms that the library learns too"),
    "unknown_words": at_least(0.01, "share of words that a word tokeniser of the same size does not know"),
    "bits_single": at_most(3.8, "bits a character of unseen text when tokens are counted singly, largest vocabulary"),
    "bits_bytes": reported("the same when bytes are counted singly"),
    "whole_words": at_least(0.3, "share of the unseen words that are one token, largest vocabulary"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"sizes": (256, 400), "plain": 260, "part": 1_000},
    "gpu": {"text": "moby_dick", "sizes": (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768)},
}
STRANGE = "Straße, naïve, Ωμέγα, 你好, 😀\u200d\u0301\x00"  # nothing like it was learned from


@dataclass(frozen=True)
class Experiment:
    text: str = "pydoc"  # what to learn: pydoc, tiny_shakespeare, moby_dick, names, or a text file of yours
    sizes: tuple[int, ...] = (256, 300, 400, 600, 1_000, 1_500, 2_500, 4_000)  # of the vocabulary
    plain: int = 320  # size up to which merges are also learned in plain terms
    part: int = 20_000  # characters of the text from which they are learned

    def __call__(self, run: Run) -> dict[str, float]:
        text = open_text(self.text)
        if len(text.test) < 100:
            raise ValueError(f"the unseen tenth of the text needs 100 characters or more; it has {len(text.test)}")
        largest = BytePairTokeniser.fit(text.train, max(self.sizes))
        tokenisers = [BytePairTokeniser(largest.merges[: size - 256]) for size in self.sizes]  # the first merges
        train, test = ([each.encode(part) for each in tokenisers] for part in (text.train, text.test))
        back = all(each.decode(each.encode(part)) == part for each in tokenisers for part in (text.test, STRANGE))

        sizes = [each.vocabulary for each in tokenisers]
        ratio = {
            "learned from": (sizes, [len(text.train) / len(tokens) for tokens in train]),
            "unseen": (sizes, [len(text.test) / len(tokens) for tokens in test]),
        }
        figure = curves(ratio, x_label="tokens in the vocabulary", y_label="characters a token", log_x=True)
        run.figure(
            "how short a text becomes",
            figure,
            "With bytes alone a character is a token. Every merge makes the text shorter, unseen text less and less: "
            "late merges are words that seldom come again.",
        )
        shares = [bits_a_character(*parts, len(text.test)) for parts in zip(train, test, sizes, strict=True)]
        run.figure(
            "what is left to model",
            curves({"single tokens": (sizes, [share for share, _ in shares]),
                    "pairs of tokens": (sizes, [share for _, share in shares])},
                   x_label="tokens in the vocabulary", y_label="bits a character of unseen text", log_x=True),
            "Bits for a character of unseen text by counting tokens singly, and each after the one before it. A larger "
            "vocabulary does a part of the model's work, until tokens are too rare to be counted.",
        )  # fmt: skip
        run.figure("the first merges", first_merges(text.train, largest), "The pairs merged first, by how often the "
                   "new token occurs in the text at that moment; ␣ is a space.")  # fmt: skip
        run.table(
            "an unseen sentence", sentence_table(text.test, tokenisers), "The same words with more and more merges."
        )

        part = text.train[: self.part]
        slow, fast = learn_merges(part, self.plain), BytePairTokeniser.fit(part, self.plain).merges
        words = WordTokeniser.fit(text.train, most=max(self.sizes))
        unknown = (words.encode(text.test) == words.special.index("<unknown>")).double().mean()
        whole = [len(largest.encode(f" {word}")) == 1 for word in set(words.decode(words.encode(text.test)).split())]
        run.note(
            "nothing is unknown",
            f"A word tokeniser of {max(self.sizes):,} words does not know {float(unknown):.1%} of the unseen words. "
            "Byte pairs know all of them, if need be letter by letter, and write texts in scripts they never saw: "
            f"“{STRANGE[:24]}” has {len(tokenisers[-1].encode(STRANGE))} tokens, most of them single bytes.",
        )
        return {
            "characters_a_token": ratio["unseen"][1][-1],
            "loses_nothing": float(back),
            "the_same_by_library": sum(a == b for a, b in zip(slow, fast, strict=False)) / max(len(slow), len(fast)),
            "unknown_words": float(unknown),
            "bits_single": shares[-1][0],
            "bits_bytes": shares[0][0],
            "whole_words": sum(whole) / len(whole),
        }


def bits_a_character(
    train: Int[Tensor, " time"], test: Int[Tensor, " unseen"], vocabulary: int, characters: int
) -> tuple[float, float]:
    """−log₂ p of the unseen tokens for each of its characters: counted singly, and after the token before."""
    single = NGrams.fit(train, 1, vocabulary=vocabulary, smoothing=1.0)
    pair = NGrams.fit(train, 2, vocabulary=vocabulary, smoothing=20.0, lower=single)
    bits = [-float(model.log_prob(test[None])) / log(2) / characters for model in (single, pair)]
    return bits[0], bits[1]


def first_merges(text: str, tokeniser: BytePairTokeniser, count: int = 12) -> "Figure":
    """How often each of the first new tokens occurs when it is made."""
    pieces = Counter(PIECES.findall(text))
    words = {tuple(bytes([code]) for code in piece.encode()): often for piece, often in pieces.items()}
    made = {}
    for pair in tokeniser.merges[:count]:
        words = {merged(word, pair) if pair[1] in word else word: often for word, often in words.items()}
        token = pair[0] + pair[1]
        made[visible(token.decode(errors="replace"))] = float(
            sum(often * word.count(token) for word, often in words.items())
        )
    return bars(made, x_label="times in the text")


def sentence_table(text: str, tokenisers: list[BytePairTokeniser]) -> list[dict[str, str | float]]:
    """The first words of the text, cut into tokens."""
    sentence = text[text.find(" ") :][:60].rsplit(" ", 1)[0].replace("\n", " ")
    rows: list[dict[str, str | float]] = []
    for tokeniser in tokenisers:
        tokens = [tokeniser.tokens[token] for token in tokeniser.encode(sentence).tolist()]
        cut = " | ".join(visible(token.decode(errors="replace")) for token in tokens)
        rows.append({"vocabulary": float(tokeniser.vocabulary), "tokens": float(len(tokens)), "cut": cut})
    return rows
