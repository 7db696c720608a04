"""Chords and solos over them: notes of the chord on the beat, notes of the scale between (book sec. 10.1.2).

Progressions and solos follow a law that is known note by note, so that one can say what a model that hears the chords
can reach, and how much of it one that does not hear them must miss.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.music.keys import MAJOR, NAMES

DEGREES = ((0, False), (2, True), (4, True), (5, False), (7, False), (9, True))
"""The chords of a major key, I ii iii IV V vi: semitones above the tonic, and whether minor."""
FOLLOWS = ((1, 2, 3, 4, 5), (4,), (3, 5), (0, 1, 4), (0, 5), (1, 3))
"""Which of them may come after each; all with equal chances."""
CADENCE = (4, 0)
"""The last two chords: V and I."""
CHORDS = 24
"""The major and the minor chords on each of the twelve pitch classes: twice the root, and one more if minor."""
NOTES = 4
"""Notes over a chord: the first and the third fall on a beat."""
LOWEST, HIGHEST = 60, 83
"""Between which pitches a solo lies."""
LEAP, STEP = 7, 2
"""Semitones from the last note at most: to a note on the beat, to one between."""


class Solos(NamedTuple):
    """Pieces: their chords, the notes over them as MIDI pitches, and the tonic of each."""

    chords: Int[Tensor, "count bars"]
    notes: Int[Tensor, "count time"]
    tonic: Int[Tensor, " count"]


def chord_name(chord: int) -> str:
    """Such as "C" or "Am"."""
    return NAMES[chord // 2] + "m" * (chord % 2)


def chord_tones(chords: Int[Tensor, "*batch"]) -> Bool[Tensor, "*batch 12"]:
    """Which pitch classes sound in a chord: its root, its major or minor third, its fifth."""
    if bool(((chords < 0) | (chords >= CHORDS)).any()):
        raise ValueError(f"chords are numbers from 0 to {CHORDS - 1}; got {int(chords.min())} to {int(chords.max())}")
    root, third = chords // 2, 4 - chords % 2
    tones = torch.stack([root, root + third, root + 7], -1) % 12
    return torch.nn.functional.one_hot(tones, 12).sum(-2).bool()


def on_the_beat(time: int) -> Bool[Tensor, " {time}"]:
    """Which notes of a solo fall on a beat: every second one."""
    return torch.arange(time) % 2 == 0


def chord_tone_share(notes: Int[Tensor, "count time"], chords: Int[Tensor, "count bars"]) -> float:
    """The share of the notes on beats that belong to the chord that sounds then."""
    if notes.shape[1] != NOTES * chords.shape[1]:
        raise ValueError(f"there must be {NOTES} notes a chord; got {notes.shape[1]} for {chords.shape[1]} chords")
    sounding = chord_tones(chords.repeat_interleave(NOTES, 1))
    fits = sounding.gather(-1, (notes % 12)[..., None])[..., 0]
    return float(fits[:, on_the_beat(notes.shape[1])].double().mean())


def progressions(tonic: Int[Tensor, " count"], bars: int, generator: torch.Generator) -> Int[Tensor, "count {bars}"]:
    """Chords of the major key on each tonic, from I to V and I by the law `FOLLOWS`."""
    count = len(tonic)
    follows = torch.zeros(len(DEGREES), len(DEGREES))
    for degree, next_degrees in enumerate(FOLLOWS):
        follows[degree, list(next_degrees)] = 1.0
    degrees = [torch.zeros(count, dtype=torch.int64)]
    for _ in range(bars - len(CADENCE) - 1):
        degrees.append(torch.multinomial(follows[degrees[-1]], 1, generator=generator)[:, 0])
    degrees += [torch.full((count,), degree) for degree in CADENCE]
    semitones, minor = torch.tensor(DEGREES).T[:, torch.stack(degrees, 1)]
    chords: Tensor = 2 * ((tonic[:, None] + semitones) % 12) + minor
    return chords


def allowed(
    before: Int[Tensor, " count"],
    chord: Int[Tensor, " count"],
    tonic: Int[Tensor, " count"],
    *,
    beat: Bool[Tensor, " count"],
) -> Bool[Tensor, "count pitches"]:
    """Which pitches from `LOWEST` to `HIGHEST` may follow the one before; all of them with equal chances.

    On a beat: those of the chord, at most a fifth away. Between: those of the scale, at most a tone away. No note is
    repeated.
    """
    pitches = torch.arange(LOWEST, HIGHEST + 1)
    away = (pitches - before[:, None]).abs()
    scale = torch.zeros(12, dtype=torch.bool)
    scale[list(MAJOR)] = True
    in_scale = scale[(pitches - tonic[:, None]) % 12]
    on_beat = chord_tones(chord)[:, pitches % 12] & (away <= LEAP)
    return torch.where(beat[:, None], on_beat, in_scale & (away <= STEP)) & (away > 0)


def solos_over_chords(count: int, *, bars: int = 8, keys: int = 12, seed: int = 0) -> Solos:
    """So many progressions of `bars` chords, each with a solo of four notes a chord.

    The tonic is one of the first `keys` pitch classes: C alone, or all twelve.
    """
    if count < 1 or bars < 3:
        raise ValueError(f"need at least one piece and three bars; got count={count}, bars={bars}")
    if not 1 <= keys <= 12:
        raise ValueError(f"there are 12 pitch classes to be a tonic, and one is needed; got keys={keys}")
    source = torch.Generator().manual_seed(seed)
    tonic = torch.randint(keys, (count,), generator=source)
    chords = progressions(tonic, bars, source)
    notes: list[Tensor] = []
    for time in range(NOTES * bars):
        may = _law(notes, chords, tonic, time)
        notes.append(LOWEST + torch.multinomial(may.double(), 1, generator=source)[:, 0])
    return Solos(chords, torch.stack(notes, 1), tonic)


def solo_nats(solos: Solos) -> Float[Tensor, "count time"]:
    """−log p(note | notes before, chords) by the law of the solos: the log of how many notes it allows."""
    notes = list(solos.notes.T)
    counts = [_law(notes[:time], solos.chords, solos.tonic, time).sum(1) for time in range(len(notes))]
    return torch.stack(counts, 1).double().log()


def _law(notes: list[Tensor], chords: Tensor, tonic: Tensor, time: int) -> Tensor:
    before = notes[-1] if notes else torch.full_like(tonic, (LOWEST + HIGHEST) // 2)
    return allowed(
        before, chords[:, time // NOTES], tonic, beat=torch.full_like(tonic, time % 2 == 0, dtype=torch.bool)
    )
