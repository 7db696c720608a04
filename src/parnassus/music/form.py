"""Pieces with a form: home, relative minor, dominant, and home again (book sec. 10.1).

The book's example of what a model must remember for long: C major, A minor, G major, and back to C. These pieces are
made by a law whose entropy is known, so that one can say how much of it a model has learned.
"""

from itertools import combinations
from math import comb, log

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.music.keys import MAJOR, MINOR, Key

FIGURES = ((0, 2, 4, 2), (0, 1, 2, 0), (0, 4, 2, 0), (0, 3, 2, 0), (0, -1, 0, 2), (0, 2, 0, 4))
"""Four notes as degrees of the scale above the first; a piece knows two of them."""
STARTS = (0, 7)
"""Degrees on which a bar may begin: the tonic, low or high."""
CADENCE = (7, 4, 2, 0)
"""The last bar of a section: down its chord to the tonic."""
PLAN = ((0, False), (9, True), (7, False), (0, False))
"""The sections: semitones above home, and whether minor."""
BAR, LOWEST, HIGHEST = 4, 53, 85
"""Notes in a bar, and between which pitches all of them lie."""


def sections(home: Key) -> tuple[Key, ...]:
    """The keys of a piece whose home is this one (book sec. 10.1)."""
    return tuple(home.above(semitones, minor=minor) for semitones, minor in PLAN)


def modulating_pieces(
    count: int, *, bars: int = 4, seed: int = 0
) -> tuple[Int[Tensor, "{count} time"], Int[Tensor, " {count}"]]:
    """MIDI pitches of pieces through four sections of `bars` bars, and the tonic of each one's home.

    The home, two figures, and for each bar one of the two and its octave are drawn with equal chances; the
    last bar of a section is its cadence.
    """
    if count < 1 or bars < 2:
        raise ValueError(f"need at least one piece and two bars a section; got count={count}, bars={bars}")
    source = torch.Generator().manual_seed(seed)
    home = torch.randint(12, (count,), generator=source)
    pairs = torch.tensor(list(combinations(range(len(FIGURES)), 2)))
    pair = pairs[torch.randint(len(pairs), (count,), generator=source)]
    which = torch.randint(2, (count, len(PLAN), bars), generator=source)
    start = torch.tensor(STARTS)[torch.randint(len(STARTS), (count, len(PLAN), bars), generator=source)]
    figure = pair[torch.arange(count)[:, None, None], which]
    degree = torch.tensor(FIGURES)[figure] + start[..., None]
    degree[:, :, -1] = torch.tensor(CADENCE)
    tonic = home[:, None] + torch.tensor([semitones for semitones, _ in PLAN])
    scale = torch.tensor([MINOR if minor else MAJOR for _, minor in PLAN])[:, None, None].expand(-1, bars, BAR, -1)
    steps = scale.expand(count, -1, -1, -1, -1).gather(-1, (degree % 7)[..., None])[..., 0]
    octave = torch.div(degree, 7, rounding_mode="floor")
    middle = 60 + (tonic + 5) % 12 - 5  # the tonic nearest to middle C
    return (middle[..., None, None] + steps + 12 * octave).flatten(1), home


def form_entropy(bars: int = 4) -> float:
    """The entropy of a piece, in nats.

        H = log 12 + log 15 + n log 4 − 2^(1−n) log 5,   n bars that are no cadence

    The last term: when all bars happen to use one figure, which other one the piece knows is never heard.
    """
    free = len(PLAN) * (bars - 1)
    pairs, others = comb(len(FIGURES), 2), len(FIGURES) - 1
    return log(12) + log(pairs) + free * log(2 * len(STARTS)) - 2.0 ** (1 - free) * log(others)
