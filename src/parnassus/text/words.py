"""Text as words and marks, the rarest of them unknown (book sec. 9.2)."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.text.vocabulary import Vocabulary, checked_ids

UNKNOWN = "<unknown>"
PIECES = re.compile(r"\w+|[^\w\s]")
NO_SPACE_BEFORE, NO_SPACE_AFTER = frozenset(".,;:!?)]}’'"), frozenset("([{’'")


def split_words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, and every other mark by itself; white space only parts them."""
    return PIECES.findall(text)


def join_words(words: list[str]) -> str:
    """Words with a space between, but none before a comma or after an opening bracket: close to how people write."""
    joined = ""
    for word in words:
        tight = not joined or word in NO_SPACE_BEFORE or joined[-1] in NO_SPACE_AFTER
        joined += word if tight else f" {word}"
    return joined


@dataclass(frozen=True)
class WordTokeniser:
    """Numbers words from frequent to rare; what it does not know becomes one token, `<unknown>`.

    White space and unknown words are lost: `decode` writes a text that reads like the first, not the same one.
    `<unknown>` is the last of the special tokens, so that a padding token can be number 0 as in Keras (book sec. 9.2).
    """

    words: tuple[str, ...]
    special: tuple[str, ...] = (UNKNOWN,)

    def __post_init__(self) -> None:
        if UNKNOWN not in self.special:
            raise ValueError(
                f"the special tokens of words must hold {UNKNOWN}; got {', '.join(self.special) or 'none'}"
            )
        _ = self._vocabulary  # checks it

    @classmethod
    def fit(
        cls, text: str, *, most: int | None = None, least: int = 1, special: tuple[str, ...] = ()
    ) -> "WordTokeniser":
        """The `most` frequent words that occur at least `least` times; of equal ones the first in the alphabet."""
        if least < 1 or (most is not None and most < 1):
            raise ValueError(f"least and most must be at least 1; got least={least}, most={most}")
        counts = Counter(split_words(text))
        known = sorted((word for word in counts if counts[word] >= least), key=lambda word: (-counts[word], word))
        if not known:
            raise ValueError(f"there are no words to learn: the text has {len(counts)}, none of them {least} times")
        return cls(tuple(known[:most]), special if UNKNOWN in special else (*special, UNKNOWN))

    @classmethod
    def from_facts(cls, facts: dict[str, object]) -> "WordTokeniser":
        words, special = facts.get("words"), facts.get("special")
        if not isinstance(words, list) or not isinstance(special, list):
            raise ValueError("a word tokeniser needs words and special, both lists")
        return cls(tuple(map(str, words)), tuple(map(str, special)))

    def facts(self) -> dict[str, object]:
        """All there is to know of it, as JSON has it."""
        return {"words": list(self.words), "special": list(self.special)}

    @property
    def vocabulary(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> Int[Tensor, " time"]:
        ids, unknown = self._vocabulary.ids, self.special.index(UNKNOWN)
        return torch.tensor([ids.get(word, unknown) for word in split_words(text)], dtype=torch.int64)

    def decode(self, tokens: Int[Tensor, " time"]) -> str:
        """The words of these tokens; of the special ones only `<unknown>` is written."""
        shift, unknown = len(self.special), self.special.index(UNKNOWN)
        written = [token for token in checked_ids(tokens, self.vocabulary) if token >= shift or token == unknown]
        return join_words([UNKNOWN if token == unknown else self.words[token - shift] for token in written])

    def unknown(self, text: str) -> list[str]:
        """The words that it has no number for, each once."""
        ids = self._vocabulary.ids
        return [word for word in dict.fromkeys(split_words(text)) if word not in ids]

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.special, self.words)
