"""Byte-level BPE tokeniser (book sec. 9.5)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.text.byte_pair_library import learn_merges_by_library, library_tokenizer
from parnassus.text.byte_pair_merges import BYTES, PIECES, Pair, merge_pair
from parnassus.text.vocabulary import Vocabulary, check_ids, number_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MergeLearner: TypeAlias = Callable[[str, int], list[Pair]]


@dataclass(frozen=True)
class BytePairTokeniser:
    """Byte-level BPE: 256 bytes and one token for each merge; encodes any text without loss (book sec. 9.5)."""

    merges: tuple[Pair, ...]
    special: tuple[str, ...] = ()
    _cache: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = set(BYTES)
        for left, right in self.merges:
            if left not in known or right not in known:
                raise ValueError(f"a merge must join earlier tokens; got {left!r} and {right!r}")
            known.add(left + right)
        _ = Vocabulary(self.special, ())  # validates them

    @classmethod
    def fit(
        cls, text: str, size: int, *, special: tuple[str, ...] = (), learn: MergeLearner = learn_merges_by_library
    ) -> "BytePairTokeniser":
        """Learn about `size` tokens, including the special ones; fewer if no pair occurs twice."""
        if not text:
            raise ValueError("text must not be empty")
        minimum = len(BYTES) + len(special)
        if size < minimum:
            raise ValueError(f"size must be at least {minimum}, the bytes and special tokens; got size={size}")
        return cls(tuple(learn(text, size - len(special))), special)

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> "BytePairTokeniser":
        merges, special = data.get("merges"), data.get("special")
        if not isinstance(merges, list) or not isinstance(special, list):
            raise ValueError("a byte-pair tokeniser needs two lists, merges and special")
        try:
            pairs = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in merges]
        except (TypeError, ValueError):
            raise ValueError("merges must be pairs of hexadecimal strings") from None
        return cls(tuple(pairs), tuple(map(str, special)))

    def to_dict(self) -> dict[str, object]:
        """JSON-compatible representation, with bytes in hexadecimal."""
        return {"merges": [[left.hex(), right.hex()] for left, right in self.merges], "special": list(self.special)}

    @property
    def vocabulary(self) -> int:
        return len(self.special) + len(self.tokens)

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of each token, in the order of the ids after the special ones."""
        return tuple(dict.fromkeys([*BYTES, *(left + right for left, right in self.merges)]))

    def encode(self, text: str) -> Int[Tensor, " time"]:
        ids: list[int] = []
        for piece in PIECES.findall(text):
            if piece not in self._cache:
                self._cache[piece] = [self._ids[token] for token in self.merge_bytes(piece)]
            ids += self._cache[piece]
        return torch.tensor(ids, dtype=torch.int64)

    def merge_bytes(self, piece: str) -> tuple[bytes, ...]:
        """The tokens of one piece: apply the merges in the order in which they were learned."""
        word = tuple(bytes([code]) for code in piece.encode())
        while len(word) > 1:
            first = min(pairwise(word), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if first not in self._ranks:
                break
            word = merge_pair(word, first)
        return word

    @accepts_arrays
    def decode(self, tokens: Int[Tensor, " time"]) -> str:
        """The text of these tokens, without special ones; invalid UTF-8 becomes �."""
        offset = len(self.special)
        ids = check_ids(tokens, self.vocabulary)
        return b"".join(self.tokens[token - offset] for token in ids if token >= offset).decode(errors="replace")

    def to_library(self) -> "Tokenizer":
        """This tokeniser as a `tokenizers.Tokenizer`, for large texts."""
        return library_tokenizer(self.tokens, self.merges, self.special)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return number_tokens(self.tokens, first=len(self.special))

    @cached_property
    def _ranks(self) -> dict[Pair, int]:
        return {pair: index for index, pair in reversed(list(enumerate(self.merges)))}
