"""Character tokeniser (book sec. 9.2)."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.text.vocabulary import Vocabulary, describe_characters


@dataclass(frozen=True)
class CharacterTokeniser:
    """One token for each character of an alphabet; other characters raise an error (book sec. 9.2).

    `fit` sorts the characters; their ids follow those of the special tokens.
    """

    alphabet: str
    special: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.alphabet:
            raise ValueError("alphabet must have at least one character; got none")
        _ = self._vocabulary  # validates it

    @classmethod
    def fit(cls, text: str, *, special: tuple[str, ...] = ()) -> "CharacterTokeniser":
        """The alphabet of all characters in the text."""
        if not text:
            raise ValueError("text must not be empty")
        return cls("".join(sorted(set(text))), special)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> "CharacterTokeniser":
        alphabet, special = data.get("alphabet"), data.get("special")
        if not isinstance(alphabet, str) or not isinstance(special, list):
            raise ValueError("a character tokeniser needs alphabet, a string, and special, a list")
        return cls(alphabet, tuple(map(str, special)))

    def to_dict(self) -> dict[str, object]:
        """JSON-compatible representation."""
        return {"alphabet": self.alphabet, "special": list(self.special)}

    @property
    def vocabulary(self) -> int:
        return len(self._vocabulary)

    def encode(self, text: str) -> Int[Tensor, " time"]:
        ids = self._vocabulary.ids
        unknown = [character for character in text if character not in ids]
        if unknown:
            raise ValueError(
                f"text must consist of the {len(ids)} characters of the alphabet; got {describe_characters(unknown)}"
            )
        return torch.tensor([ids[character] for character in text], dtype=torch.int64)

    @accepts_arrays
    def decode(self, tokens: Int[Tensor, " time"]) -> str:
        """The text of these tokens, without special ones."""
        return "".join(self._vocabulary.token_strings(tokens))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.special, tuple(self.alphabet))
