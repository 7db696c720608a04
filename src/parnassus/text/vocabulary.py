"""Names for the numbers 0, 1, 2, …: what every tokeniser needs to go from tokens to ids and back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from jaxtyping import Int
from torch import Tensor

NAMED = 5  # unseen characters that a sentence names one by one


@dataclass(frozen=True)
class Vocabulary:
    """Special tokens have the first ids, in the order given; the tokens that spell text follow.

    No text is ever encoded as a special token, even if it reads like one: `<end>` in a text is five characters.
    """

    special: tuple[str, ...]
    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.special)) < len(self.special):
            raise ValueError(f"special tokens must differ from each other; got {', '.join(self.special)}")
        if len(set(self.tokens)) < len(self.tokens):
            twice = next(token for place, token in enumerate(self.tokens) if token in self.tokens[:place])
            raise ValueError(f"the tokens of a vocabulary must differ from each other; got {twice!r} twice")

    def __len__(self) -> int:
        return len(self.special) + len(self.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token that spells text."""
        return {token: place for place, token in enumerate(self.tokens, len(self.special))}

    def spelt(self, tokens: Int[Tensor, " time"]) -> list[str]:
        """The tokens of these ids, without the special ones, which spell nothing."""
        shift = len(self.special)
        return [self.tokens[token - shift] for token in checked_ids(tokens, len(self)) if token >= shift]


def checked_ids(tokens: Int[Tensor, " time"], size: int) -> list[int]:
    """The ids as a list, once it is sure that each belongs to one of `size` tokens."""
    ids: list[int] = tokens.tolist()
    if ids and not (min(ids) >= 0 and max(ids) < size):
        raise ValueError(f"tokens must lie between 0 and {size - 1}; got {min(ids)} to {max(ids)}")
    return ids


def named(characters: Iterable[str]) -> str:
    """Characters as a reader can look them up: 'é' (U+00E9)."""
    different = list(dict.fromkeys(characters))
    shown = ", ".join(f"{character!r} (U+{ord(character):04X})" for character in islice(different, NAMED))
    return shown + (f" and {len(different) - NAMED} more" if len(different) > NAMED else "")


def special_id(special: Sequence[str], name: str) -> int:
    """The id of a special token."""
    if name not in special:
        raise ValueError(f"there is no special token {name}; there are {', '.join(special) or 'none'}")
    return special.index(name)
