"""Pitches, chords and bars as text, in scientific pitch notation: MIDI pitch 60, middle C, is C4."""

import re
from collections.abc import Sequence

from parnassus.music.keys import NAMES

NATURALS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
ACCIDENTALS = {"": 0, "♯": 1, "#": 1, "♭": -1, "b": -1}
PITCH = re.compile(r"([A-G])([♯#♭b]?)(-?[0-9]+)")
CHORD = re.compile(r"([A-G])([♯#♭b]?)(m?)")


def pitch_name(pitch: int) -> str:
    """The name of a MIDI pitch, such as "C4" or "E♭5"."""
    octave, tone = divmod(pitch, 12)
    return f"{NAMES[tone]}{octave - 1}"


def parse_pitch(name: str) -> int:
    """The MIDI pitch of a name; accidentals are ♯ or #, ♭ or b."""
    match = PITCH.fullmatch(name)
    if match is None:
        raise ValueError(f"a pitch must be a name with an octave, such as C4, F#4 or Bb3; got {name!r}")
    return 12 * (int(match[3]) + 1) + NATURALS[match[1]] + ACCIDENTALS[match[2]]


def parse_chord(name: str) -> int:
    """The id of a chord symbol such as "C" or "Am": 2 · root, + 1 if minor; inverse of `chord_name`."""
    match = CHORD.fullmatch(name)
    if match is None:
        raise ValueError(f"a chord must be a name such as C, Am, F# or Bbm; got {name!r}")
    return 2 * ((NATURALS[match[1]] + ACCIDENTALS[match[2]]) % 12) + bool(match[3])


def format_bars(notes: Sequence[str], bar: int) -> str:
    """Notes in columns of equal width, with a bar line after every `bar` notes."""
    width = max(map(len, notes), default=0)
    bars = [" ".join(note.ljust(width) for note in notes[start : start + bar]) for start in range(0, len(notes), bar)]
    return " | ".join(bars).rstrip()
