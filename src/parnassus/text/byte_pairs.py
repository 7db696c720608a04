"""Text as byte pairs: frequent words are one token, rare ones a few, and every text can be written (book sec. 9.5)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.text.merges import BYTES, PIECES, Pair, merged
from parnassus.text.merges_by_library import learn_merges_by_library, library_tokenizer
from parnassus.text.vocabulary import Vocabulary, checked_ids

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Learner: TypeAlias = Callable[[str, int], list[Pair]]


@dataclass(frozen=True)
class BytePairTokeniser:
    """Byte-level BPE: 256 bytes, and one token for each merge (book sec. 9.5)."""

    merges: tuple[Pair, ...]
    special: tuple[str, ...] = ()
    _known: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = set(BYTES)
        for left, right in self.merges:
            if left not in known or right not in known:
                raise ValueError(f"a merge must join tokens that exist before it; got {left!r} and {right!r}")
            known.add(left + right)
        _ = Vocabulary(self.special, ())  # checks them

    @classmethod
    def fit(
        cls, text: str, size: int, *, special: tuple[str, ...] = (), learn: Learner = learn_merges_by_library
    ) -> "BytePairTokeniser":
        """About `size` tokens, the special ones among them; fewer where no pair occurs twice."""
        if not text:
            raise ValueError("there is nothing to merge: the text is empty")
        least = len(BYTES) + len(special)
        if size < least:
            raise ValueError(f"size must be at least {least}, the bytes and special tokens; got size={size}")
        return cls(tuple(learn(text, size - len(special))), special)

    @classmethod
    def from_facts(cls, facts: dict[str, object]) -> "BytePairTokeniser":
        merges, special = facts.get("merges"), facts.get("special")
        if not isinstance(merges, list) or not isinstance(special, list):
            raise ValueError("a byte-pair tokeniser needs merges and special, both lists")
        try:
            pairs = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in merges]
        except (TypeError, ValueError):
            raise ValueError("the merges of byte pairs must be pairs of hexadecimal texts") from None
        return cls(tuple(pairs), tuple(map(str, special)))

    def facts(self) -> dict[str, object]:
        """All there is to know of it, as JSON has it; bytes are written in hexadecimal."""
        return {"merges": [[left.hex(), right.hex()] for left, right in self.merges], "special": list(self.special)}

    @property
    def vocabulary(self) -> int:
        return len(self.special) + len(self.tokens)

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """What each token spells, in the order of the ids that follow the special ones."""
        return tuple(dict.fromkeys([*BYTES, *(left + right for left, right in self.merges)]))

    def encode(self, text: str) -> Int[Tensor, " time"]:
        ids: list[int] = []
        for piece in PIECES.findall(text):
            if piece not in self._known:
                self._known[piece] = [self._ids[token] for token in self.parts(piece)]
            ids += self._known[piece]
        return torch.tensor(ids, dtype=torch.int64)

    def parts(self, piece: str) -> tuple[bytes, ...]:
        """One piece of a text as tokens: merge the pair that was learned first, then the next, until none is left."""
        word = tuple(bytes([code]) for code in piece.encode())
        while len(word) > 1:
            first = min(pairwise(word), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if first not in self._ranks:
                break
            word = merged(word, first)
        return word

    def decode(self, tokens: Int[Tensor, " time"]) -> str:
        """The text of these tokens; special ones spell nothing, and bytes that are not UTF-8 become �."""
        shift = len(self.special)
        ids = checked_ids(tokens, self.vocabulary)
        return b"".join(self.tokens[token - shift] for token in ids if token >= shift).decode(errors="replace")

    def in_library(self) -> "Tokenizer":
        """The same tokeniser as an object of the `tokenizers` library, for large texts."""
        return library_tokenizer(self.tokens, self.merges, self.special)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {token: place for place, token in enumerate(self.tokens, len(self.special))}

    @cached_property
    def _ranks(self) -> dict[Pair, int]:
        return {pair: place for place, pair in reversed(list(enumerate(self.merges)))}
