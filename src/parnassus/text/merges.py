"""How byte pairs are learned: common neighbours become one token, again and again (book sec. 9.5; Sennrich 2016).

A text is cut into pieces (a word with the space before it, a number, a run of marks, white space) and each piece into
its UTF-8 bytes. The pair of neighbours that occurs most often becomes a token of its own, everywhere at once; this is
repeated.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Pair: TypeAlias = tuple[bytes, bytes]

# Everything beyond ASCII counts as a letter: the cut then needs no table of Unicode, and is the same in every library.
LETTERS, DIGITS, BLANKS = "A-Za-z\x80-\U0010ffff", "0-9", "\t\n\x0b\x0c\r "
PATTERN = (
    f" ?[{LETTERS}]+| ?[{DIGITS}]+| ?[^{BLANKS}{LETTERS}{DIGITS}]+"
    f"|[{BLANKS}]+(?![^{BLANKS}])|[{BLANKS}]+"  # blanks leave their last one to the word that follows
)
PIECES = re.compile(PATTERN)

PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTES = tuple(bytes([code]) for code in [*PRINTED, *sorted(set(range(256)) - set(PRINTED))])
"""The 256 bytes in the order of their ids, which is GPT-2's: first those that are characters one can see."""


def learn_merges(text: str, size: int) -> list[Pair]:
    """Which pairs to merge, in order, until there are `size` tokens: the method itself, to be read.

    Of equally frequent pairs that of the smaller ids is merged. A pair that occurs only once is left alone.
    """
    counts = Counter(PIECES.findall(text))
    words = {tuple(bytes([code]) for code in piece.encode()): count for piece, count in counts.items()}
    ids = {token: place for place, token in enumerate(BYTES)}
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
        words = {merged(word, best) if best[1] in word else word: count for word, count in words.items()}
    return merges


def merged(word: Sequence[bytes], pair: Pair) -> tuple[bytes, ...]:
    """The word with this pair made one wherever it stands, from left to right."""
    joined: list[bytes] = []
    place = 0
    while place < len(word):
        step = 2 if tuple(word[place : place + 2]) == pair else 1
        joined.append(b"".join(word[place : place + step]))
        place += step
    return tuple(joined)
