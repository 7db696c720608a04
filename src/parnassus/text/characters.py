"""Text as characters: one token for each that occurs (book sec. 9.2)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.text.vocabulary import Vocabulary, named


@dataclass(frozen=True)
class CharacterTokeniser:
    """Numbers the characters of an alphabet; nothing is lost, and nothing outside the alphabet can be written.

    The ids are those of the sorted characters, after the special tokens (book sec. 9.2).
    """

    alphabet: str
    special: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.alphabet:
            raise ValueError("an alphabet needs at least one character; got none")
        _ = self._vocabulary  # checks it

    @classmethod
    def fit(cls, text: str, *, special: tuple[str, ...] = ()) -> "CharacterTokeniser":
        """Every character that occurs in the text."""
        if not text:
            raise ValueError("there is no alphabet to learn: the text is empty")
        return cls("".join(sorted(set(text))), special)

    @classmethod
    def from_facts(cls, facts: dict[str, object]) -> "CharacterTokeniser":
        alphabet, special = facts.get("alphabet"), facts.get("special")
        if not isinstance(alphabet, str) or not isinstance(special, list):
            raise ValueError("a character tokeniser needs an alphabet (a text) and special (a list)")
        return cls(alphabet, tuple(map(str, special)))

    def facts(self) -> dict[str, object]:
        """All there is to know of it, as JSON has it."""
        return {"alphabet": self.alphabet, "special": list(self.special)}

    @property
    def vocabulary(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> Int[Tensor, " time"]:
        ids = self._vocabulary.ids
        unseen = [character for character in text if character not in ids]
        if unseen:
            raise ValueError(f"the alphabet of {len(ids)} characters has no {named(unseen)}")
        return torch.tensor([ids[character] for character in text], dtype=torch.int64)

    def decode(self, tokens: Int[Tensor, " time"]) -> str:
        """The text of these tokens; special ones spell nothing."""
        return "".join(self._vocabulary.spelt(tokens))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.special, tuple(self.alphabet))
