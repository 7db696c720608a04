"""The mapping between tokens and ids that all tokenisers share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

from jaxtyping import Int
from torch import Tensor

from parnassus.errors import check_indices

Token = TypeVar("Token", str, bytes)
MAX_LISTED = 5  # unknown characters that an error message lists


@dataclass(frozen=True)
class Vocabulary:
    """Special tokens have the first ids, in the given order; ordinary tokens follow.

    Text is never encoded as a special token: `<end>` in a text is five characters.

    >>> Vocabulary(special=("<pad>",), tokens=("a", "b")).ids["b"]
    2
    """

    special: tuple[str, ...]
    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.special)) < len(self.special):
            raise ValueError(f"special tokens must be distinct; got {', '.join(self.special)}")
        if len(set(self.tokens)) < len(self.tokens):
            duplicate = next(token for index, token in enumerate(self.tokens) if token in self.tokens[:index])
            raise ValueError(f"tokens must be distinct; got {duplicate!r} twice")

    def __len__(self) -> int:
        return len(self.special) + len(self.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each ordinary token."""
        return number_tokens(self.tokens, first=len(self.special))

    def token_strings(self, tokens: Int[Tensor, " time"]) -> list[str]:
        """The ordinary tokens with these ids; special ones are dropped."""
        offset = len(self.special)
        return [self.tokens[token - offset] for token in check_ids(tokens, len(self)) if token >= offset]


def number_tokens(tokens: Sequence[Token], *, first: int) -> dict[Token, int]:
    """The ids of tokens that are numbered from `first`."""
    return {token: index for index, token in enumerate(tokens, first)}


def check_ids(tokens: Int[Tensor, " time"], size: int) -> list[int]:
    """The ids as a list; raises unless each is from 0 to size − 1."""
    check_indices(size, tokens=tokens)
    ids: list[int] = tokens.tolist()
    return ids


def describe_characters(characters: Iterable[str]) -> str:
    """Distinct characters with their code points, such as 'é' (U+00E9)."""
    distinct = list(dict.fromkeys(characters))
    listed = ", ".join(f"{character!r} (U+{ord(character):04X})" for character in islice(distinct, MAX_LISTED))
    return listed + (f" and {len(distinct) - MAX_LISTED} more" if len(distinct) > MAX_LISTED else "")


def special_id(special: Sequence[str], name: str) -> int:
    """The id of a special token."""
    if name not in special:
        raise ValueError(f"the special token must be one of {', '.join(special) or 'none'}; got {name}")
    return special.index(name)
