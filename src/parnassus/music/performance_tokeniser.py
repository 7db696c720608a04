"""Tokeniser for expressive performances: notes with timing and dynamics as events (book sec. 10.1.2).

A performance on a keyboard is a sequence of four kinds of events (Oore et al. 2018):

    note on, note off     128 pitches each
    time shift            10, 20, …, 1000 ms until the next event
    velocity              32 levels of loudness, for the notes that follow
"""

from collections import defaultdict
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

PITCHES, TIME_SHIFTS, VELOCITIES = 128, 100, 32
"""Numbers of pitches, of lengths of a time shift, and of levels of loudness."""
STEP, LOUDNESS = 0.01, 4
"""Seconds per step of time, and MIDI velocities per level of loudness."""
BEGIN, NOTE_ON = 0, 1
"""Token ids: start of a performance, then the four kinds of events."""
NOTE_OFF = NOTE_ON + PITCHES
TIME_SHIFT = NOTE_OFF + PITCHES
VELOCITY = TIME_SHIFT + TIME_SHIFTS
VOCABULARY = VELOCITY + VELOCITIES


class Performance(NamedTuple):
    """The notes of a performance: onset and release in seconds, MIDI pitch, and MIDI velocity from 1 to 127.

    >>> chord = torch.tensor([60, 64])
    >>> notes = Performance(torch.zeros(2), torch.tensor([0.5, 0.75]), chord, torch.tensor([80, 90]))
    >>> decode_performance(encode_performance(notes)).release.tolist()
    [0.5, 0.75]
    """

    onset: Float[Tensor, " notes"]
    release: Float[Tensor, " notes"]
    pitch: Int[Tensor, " notes"]
    velocity: Int[Tensor, " notes"]


def encode_performance(performance: Performance) -> Int[Tensor, " tokens"]:
    """The events of a performance in order of time, with the start token first.

    Times are rounded to 10 ms, and every note lasts at least as long. A velocity event precedes a note whose level
    differs from that of the previous note. At equal times notes end before others begin.
    """
    _check(performance)
    begin, end = (torch.round(part.double() / STEP).long().tolist() for part in performance[:2])
    pitches, levels = performance.pitch.tolist(), (performance.velocity // LOUDNESS).tolist()
    notes = zip(begin, end, pitches, levels, strict=True)
    events: list[tuple[int, int, int, int]] = []  # time, whether a note begins, pitch, level
    for start, stop, pitch, level in notes:
        events += [(start, 1, pitch, level), (max(stop, start + 1), 0, pitch, 0)]
    tokens, now, loudness = [BEGIN], 0, -1
    for time, begins, pitch, level in sorted(events):
        tokens += _time_shifts(time - now)
        if begins and level != loudness:
            tokens.append(VELOCITY + level)
            loudness = level
        tokens.append((NOTE_ON if begins else NOTE_OFF) + pitch)
        now = time
    return torch.tensor(tokens)


def decode_performance(tokens: Int[Tensor, " tokens"]) -> Performance:
    """The notes of these events, ordered by onset and pitch; velocities are the centres of their levels.

    A note off ends the earliest note of its pitch and is ignored if there is none; notes that do not end last until the
    last event. Notes before the first velocity event have velocity 64.
    """
    now, velocity = 0, 64
    open_notes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    notes: list[tuple[int, int, int, int]] = []  # onset, pitch, release, velocity
    for token in tokens.tolist():
        if NOTE_ON <= token < NOTE_OFF:
            open_notes[token - NOTE_ON].append((now, velocity))
        elif NOTE_OFF <= token < TIME_SHIFT and open_notes[token - NOTE_OFF]:
            start, own = open_notes[token - NOTE_OFF].pop(0)
            notes.append((start, token - NOTE_OFF, now, own))
        elif TIME_SHIFT <= token < VELOCITY:
            now += token - TIME_SHIFT + 1
        elif token >= VELOCITY:
            velocity = (token - VELOCITY) * LOUDNESS + LOUDNESS // 2
    notes += [(start, pitch, now, own) for pitch, each in open_notes.items() for start, own in each]
    columns = torch.tensor(sorted(notes)).view(-1, 4)
    return Performance(columns[:, 0] * STEP, columns[:, 2] * STEP, columns[:, 1], columns[:, 3])


def _time_shifts(steps: int) -> list[int]:
    """Events that let this many steps of time pass: the longest shifts first."""
    longest, rest = divmod(steps, TIME_SHIFTS)
    return [TIME_SHIFT + TIME_SHIFTS - 1] * longest + [TIME_SHIFT + rest - 1] * (rest > 0)


def _check(performance: Performance) -> None:
    for name, values, low, high in (
        ("pitch", performance.pitch, 0, PITCHES - 1),
        ("velocity", performance.velocity, 1, 127),
    ):
        if len(values) and not low <= int(values.min()) <= int(values.max()) <= high:
            raise ValueError(f"{name} must be from {low} to {high}; got {int(values.min())} to {int(values.max())}")
    if len(performance.onset) and float(performance.onset.min()) < 0:
        raise ValueError(f"onset must be at least 0 s; got {float(performance.onset.min()):g}")
    if bool((performance.release < performance.onset).any()):
        raise ValueError("release must not be before onset")
