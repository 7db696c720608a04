"""Learning byte-pair merges (BPE; book sec. 9.5; Sennrich et al. 2016).

A text is split into pieces (a word with its leading space, a number, a run of punctuation, white space) and each piece
into its UTF-8 bytes. The most frequent pair of adjacent tokens is merged into a new token everywhere; this is repeated.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

Pair: TypeAlias = tuple[bytes, bytes]

# Everything beyond ASCII counts as a letter: splitting needs no Unicode tables and is the same in every library.
LETTERS, DIGITS, BLANKS = "A-Za-z\x80-\U0010ffff", "0-9", "\t\n\x0b\x0c\r "
PATTERN = (
    f" ?[{LETTERS}]+| ?[{DIGITS}]+| ?[^{BLANKS}{LETTERS}{DIGITS}]+"
    f"|[{BLANKS}]+(?![^{BLANKS}])|[{BLANKS}]+"  # the last blank of a run belongs to the next word
)
PIECES = re.compile(PATTERN)

PRINTABLE_BYTES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTES = tuple(bytes([code]) for code in [*PRINTABLE_BYTES, *sorted(set(range(256)) - set(PRINTABLE_BYTES))])
"""The 256 bytes in the order of their ids, as in GPT-2: printable characters first."""


def learn_merges(text: str, size: int) -> list[Pair]:
    """The pairs to merge, in order, until there are `size` tokens; a readable reference implementation.

    Ties go to the pair with the smaller ids. Pairs that occur only once are not merged.
    """
    words = count_words(text)
    ids = {token: position for position, token in enumerate(BYTES)}
    merges: list[Pair] = []
    while len(ids) < size:
        pairs: Counter[Pair] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]), default=None)
        if best is None or pairs[best] < 2:
            break
        merges.append(best)
        ids.setdefault(best[0] + best[1], len(ids))
        words = merge_pair_in_words(words, best)
    return merges


def count_words(text: str) -> dict[tuple[bytes, ...], int]:
    """The number of occurrences of each piece of the text, as its bytes."""
    counts = Counter(PIECES.findall(text))
    return {tuple(bytes([code]) for code in piece.encode()): count for piece, count in counts.items()}


def merge_pair_in_words(words: Mapping[tuple[bytes, ...], int], pair: Pair) -> dict[tuple[bytes, ...], int]:
    """The counts of the words with this pair merged."""
    return {merge_pair(word, pair) if pair[1] in word else word: count for word, count in words.items()}


def merge_pair(word: Sequence[bytes], pair: Pair) -> tuple[bytes, ...]:
    """The word with every occurrence of this pair merged, from left to right."""
    joined: list[bytes] = []
    position = 0
    while position < len(word):
        step = 2 if tuple(word[position : position + 2]) == pair else 1
        joined.append(b"".join(word[position : position + step]))
        position += step
    return tuple(joined)
