"""Word tokeniser with an unknown token for rare words (book sec. 9.2)."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.text.vocabulary import Vocabulary, check_ids

UNKNOWN = "<unknown>"
PIECES = re.compile(r"\w+|[^\w\s]")
NO_SPACE_BEFORE, NO_SPACE_AFTER = frozenset(".,;:!?)]}’'"), frozenset("([{’'")


def split_words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, and single punctuation marks; white space is dropped."""
    return PIECES.findall(text)


def join_words(words: list[str]) -> str:
    """Words joined by spaces, without spaces before commas and the like or after opening brackets."""
    joined = ""
    for word in words:
        no_space = not joined or word in NO_SPACE_BEFORE or joined[-1] in NO_SPACE_AFTER
        joined += word if no_space else f" {word}"
    return joined


@dataclass(frozen=True)
class WordTokeniser:
    """One token for each known word, from frequent to rare; all other words become `<unknown>`.

    White space and unknown words are lost, so `decode` does not restore the text exactly. `<unknown>` is the last of
    the special tokens, so that a padding token can have id 0 as in Keras (book sec. 9.2).
    """

    words: tuple[str, ...]
    special: tuple[str, ...] = (UNKNOWN,)

    def __post_init__(self) -> None:
        if UNKNOWN not in self.special:
            raise ValueError(f"special must contain {UNKNOWN}; got {', '.join(self.special) or 'none'}")
        _ = self._vocabulary  # validates it

    @classmethod
    def fit(
        cls, text: str, *, max_words: int | None = None, min_count: int = 1, special: tuple[str, ...] = ()
    ) -> "WordTokeniser":
        """The most frequent words with at least `min_count` occurrences; ties in alphabetical order."""
        if min_count < 1 or (max_words is not None and max_words < 1):
            raise ValueError(f"min_count and max_words must be at least 1; got {min_count=}, {max_words=}")
        counts = Counter(split_words(text))
        known = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
        if not known:
            raise ValueError(
                f"the text must have words that occur at least {min_count} times; got {len(counts)} rarer ones"
            )
        return cls(tuple(known[:max_words]), special if UNKNOWN in special else (*special, UNKNOWN))

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> "WordTokeniser":
        words, special = data.get("words"), data.get("special")
        if not isinstance(words, list) or not isinstance(special, list):
            raise ValueError("a word tokeniser needs two lists, words and special")
        return cls(tuple(map(str, words)), tuple(map(str, special)))

    def to_dict(self) -> dict[str, object]:
        """JSON-compatible representation."""
        return {"words": list(self.words), "special": list(self.special)}

    @property
    def vocabulary(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> Int[Tensor, " time"]:
        ids, unknown = self._vocabulary.ids, self.special.index(UNKNOWN)
        return torch.tensor([ids.get(word, unknown) for word in split_words(text)], dtype=torch.int64)

    @accepts_arrays
    def decode(self, tokens: Int[Tensor, " time"]) -> str:
        """The text of these tokens; of the special ones only `<unknown>` is kept."""
        offset, unknown = len(self.special), self.special.index(UNKNOWN)
        kept = [token for token in check_ids(tokens, self.vocabulary) if token >= offset or token == unknown]
        return join_words([UNKNOWN if token == unknown else self.words[token - offset] for token in kept])

    def unknown_words(self, text: str) -> list[str]:
        """The distinct words of the text that are not in the vocabulary."""
        ids = self._vocabulary.ids
        return [word for word in dict.fromkeys(split_words(text)) if word not in ids]

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.special, self.words)
