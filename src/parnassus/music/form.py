"""Synthetic melodies that modulate: home key, relative minor, dominant, home key (book sec. 10.1).

The book's example of a long-range dependency: C major, A minor, G major, and back to C. The entropy of the generating
distribution is known, so the excess loss of a model can be measured.
"""

from itertools import combinations
from math import comb, log

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.music.keys import MAJOR, MINOR, Key

MOTIFS = ((0, 2, 4, 2), (0, 1, 2, 0), (0, 4, 2, 0), (0, 3, 2, 0), (0, -1, 0, 2), (0, 2, 0, 4))
"""Motifs of four notes, as scale degrees above the first; each piece uses two of them."""
STARTS = (0, 7)
"""Scale degrees on which a bar may begin: the tonic in two octaves."""
CADENCE = (7, 4, 2, 0)
"""The last bar of a section, as scale degrees: down the tonic chord."""
PLAN = ((0, False), (9, True), (7, False), (0, False))
"""The sections: semitones above the home key, and whether minor."""
BAR, LOWEST, HIGHEST = 4, 53, 85
"""Notes per bar, and the lowest and highest MIDI pitch."""


def sections(home: Key) -> tuple[Key, ...]:
    """The keys of the sections of a piece with this home key (book sec. 10.1)."""
    return tuple(home.transpose(semitones, is_minor=is_minor) for semitones, is_minor in PLAN)


def generate_modulating_pieces(
    count: int, *, bars: int = 4, seed: int = 0
) -> tuple[Int[Tensor, "{count} time"], Int[Tensor, " {count}"]]:
    """MIDI pitches of pieces with four sections of `bars` bars, and the tonic of each home key.

    Home key, two motifs, and for each bar its motif and octave are sampled uniformly; the last bar of a section is its
    cadence.
    """
    if count < 1 or bars < 2:
        raise ValueError(f"count must be at least 1 and bars at least 2; got count={count}, bars={bars}")
    generator = torch.Generator().manual_seed(seed)
    home = torch.randint(12, (count,), generator=generator)
    pairs = torch.tensor(list(combinations(range(len(MOTIFS)), 2)))
    pair = pairs[torch.randint(len(pairs), (count,), generator=generator)]
    choice = torch.randint(2, (count, len(PLAN), bars), generator=generator)
    start = torch.tensor(STARTS)[torch.randint(len(STARTS), (count, len(PLAN), bars), generator=generator)]
    motif = pair[torch.arange(count)[:, None, None], choice]
    degree = torch.tensor(MOTIFS)[motif] + start[..., None]
    degree[:, :, -1] = torch.tensor(CADENCE)
    tonic = home[:, None] + torch.tensor([semitones for semitones, _ in PLAN])
    scale = torch.tensor([MINOR if is_minor else MAJOR for _, is_minor in PLAN])[:, None, None].expand(
        -1, bars, BAR, -1
    )
    steps = scale.expand(count, -1, -1, -1, -1).gather(-1, (degree % 7)[..., None])[..., 0]
    octave = torch.div(degree, 7, rounding_mode="floor")
    middle = 60 + (tonic + 5) % 12 - 5  # the tonic nearest to middle C
    return (middle[..., None, None] + steps + 12 * octave).flatten(1), home


def train_and_test_pieces(
    train: int, test: int, *, bars: int = 4, seed: int = 0
) -> tuple[Int[Tensor, "{train} time"], Int[Tensor, "{test} time"], Int[Tensor, " {test}"]]:
    """Pieces for training, other pieces for tests, and the tonic of the home key of each test piece."""
    pieces, _ = generate_modulating_pieces(train, bars=bars, seed=2 * seed)
    return pieces, *generate_modulating_pieces(test, bars=bars, seed=2 * seed + 1)


def form_entropy(bars: int = 4) -> float:
    """The entropy of a piece, in nats.

        H = log 12 + log 15 + n log 4 − 2^(1−n) log 5,   n bars that are not cadences

    The last term: if all bars use the same motif, the second motif of the piece is not observed.
    """
    free = len(PLAN) * (bars - 1)
    pairs, others = comb(len(MOTIFS), 2), len(MOTIFS) - 1
    return log(12) + log(pairs) + free * log(2 * len(STARTS)) - 2.0 ** (1 - free) * log(others)
