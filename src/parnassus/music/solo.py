"""Synthetic chord progressions and solos: chord tones on the beat, scale tones between (book sec. 10.1.2).

The generating distribution of each note is known, and with it the lowest possible loss of a model given the chords.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.errors import check_indices
from parnassus.music.keys import MAJOR, NAMES

DEGREES = ((0, False), (2, True), (4, True), (5, False), (7, False), (9, True))
"""The chords of a major key, I ii iii IV V vi: semitones above the tonic, and whether minor."""
FOLLOWS = ((1, 2, 3, 4, 5), (4,), (3, 5), (0, 1, 4), (0, 5), (1, 3))
"""Indices of the degrees that may follow each; sampled uniformly."""
CADENCE = (4, 0)
"""Indices of the last two chords: V and I."""
CHORDS = 24
"""Number of chords: major and minor on each pitch class; id = 2 · root, + 1 if minor."""
NOTES = 4
"""Notes per chord; the first and the third are on a beat."""
LOWEST, HIGHEST = 60, 83
"""Range of MIDI pitches."""
LEAP, STEP = 7, 2
"""Largest intervals in semitones: to a note on the beat, to a note between."""


class Solos(NamedTuple):
    """Chords, MIDI pitches of the notes over them, and tonic of each piece.

    >>> Solos(torch.tensor([[0, 1]]), torch.full((1, 8), 60), torch.tensor([0])).notes.shape
    torch.Size([1, 8])
    """

    chords: Int[Tensor, "count bars"]
    notes: Int[Tensor, "count time"]
    tonic: Int[Tensor, " count"]


def chord_name(chord: int) -> str:
    """The chord symbol, such as "C" or "Am"."""
    return NAMES[chord // 2] + "m" * (chord % 2)


def chord_tones(chords: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch 12"]:
    """Pitch classes of a chord: root, major or minor third, fifth."""
    check_indices(CHORDS, chords=chords)
    root, third = chords // 2, 4 - chords % 2
    tones = torch.stack([root, root + third, root + 7], -1) % 12
    return torch.nn.functional.one_hot(tones, 12).sum(-2).bool()


def is_on_beat(time: int) -> Bool[Tensor, " {time}"]:
    """Whether each note of a solo is on a beat: every second one."""
    return torch.arange(time) % 2 == 0


def chord_tone_fraction(notes: Int[Tensor, "count time"], chords: Int[Tensor, "count bars"]) -> float:
    """Fraction of the notes on beats that belong to the current chord."""
    if notes.shape[1] != NOTES * chords.shape[1]:
        raise ValueError(
            f"there must be {NOTES} notes per chord; got {notes.shape[1]} notes for {chords.shape[1]} chords"
        )
    tones = chord_tones(chords.repeat_interleave(NOTES, 1))
    is_chord_tone = tones.gather(-1, (notes % 12)[..., None])[..., 0]
    return float(is_chord_tone[:, is_on_beat(notes.shape[1])].double().mean())


def sample_progressions(
    tonic: Int[Tensor, " count"], bars: int, generator: torch.Generator
) -> Int[Tensor, "count {bars}"]:
    """Random progressions in major keys: I, transitions from `FOLLOWS`, then V and I."""
    count = len(tonic)
    follows = torch.zeros(len(DEGREES), len(DEGREES))
    for degree, next_degrees in enumerate(FOLLOWS):
        follows[degree, list(next_degrees)] = 1.0
    degrees = [torch.zeros(count, dtype=torch.int64)]
    for _ in range(bars - len(CADENCE) - 1):
        degrees.append(torch.multinomial(follows[degrees[-1]], 1, generator=generator)[:, 0])
    degrees += [torch.full((count,), degree) for degree in CADENCE]
    semitones, is_minor = torch.tensor(DEGREES).T[:, torch.stack(degrees, 1)]
    chords: Tensor = 2 * ((tonic[:, None] + semitones) % 12) + is_minor
    return chords


def allowed_pitches(
    before: Int[Tensor, " count"],
    chord: Int[Tensor, " count"],
    tonic: Int[Tensor, " count"],
    *,
    beat: Bool[Tensor, " count"],
) -> Bool[Tensor, "count pitches"]:
    """Whether each pitch from `LOWEST` to `HIGHEST` may follow the previous one.

    On a beat: chord tones at most a fifth away. Between beats: scale tones at most a whole tone away. No repetitions.
    """
    pitches = torch.arange(LOWEST, HIGHEST + 1)
    interval = (pitches - before[:, None]).abs()
    scale = torch.zeros(12, dtype=torch.bool)
    scale[list(MAJOR)] = True
    in_scale = scale[(pitches - tonic[:, None]) % 12]
    on_beat = chord_tones(chord)[:, pitches % 12] & (interval <= LEAP)
    return torch.where(beat[:, None], on_beat, in_scale & (interval <= STEP)) & (interval > 0)


def generate_solos(count: int, *, bars: int = 8, keys: int = 12, seed: int = 0) -> Solos:
    """Random progressions of `bars` chords, each with a solo of four notes per chord.

    The tonic is one of the first `keys` pitch classes.
    """
    if count < 1 or bars < 3:
        raise ValueError(f"count must be at least 1 and bars at least 3; got count={count}, bars={bars}")
    if not 1 <= keys <= 12:
        raise ValueError(f"keys must be from 1 to 12; got keys={keys}")
    generator = torch.Generator().manual_seed(seed)
    tonic = torch.randint(keys, (count,), generator=generator)
    chords = sample_progressions(tonic, bars, generator)
    notes: list[Tensor] = []
    for time in range(NOTES * bars):
        allowed = _allowed_notes(notes, chords, tonic, time)
        notes.append(LOWEST + torch.multinomial(allowed.double(), 1, generator=generator)[:, 0])
    return Solos(chords, torch.stack(notes, 1), tonic)


def solo_nll(solos: Solos) -> Float[Tensor, "count time"]:
    """−log p(note | previous notes, chords) under the generating distribution: log of the number of allowed notes."""
    notes = list(solos.notes.T)
    counts = [_allowed_notes(notes[:time], solos.chords, solos.tonic, time).sum(1) for time in range(len(notes))]
    return torch.stack(counts, 1).double().log()


def _allowed_notes(notes: list[Tensor], chords: Tensor, tonic: Tensor, time: int) -> Tensor:
    before = notes[-1] if notes else torch.full_like(tonic, (LOWEST + HIGHEST) // 2)
    return allowed_pitches(
        before, chords[:, time // NOTES], tonic, beat=torch.full_like(tonic, time % 2 == 0, dtype=torch.bool)
    )
