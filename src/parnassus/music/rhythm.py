"""Melodies whose notes are two factors, rhythm and pitch, and a melody for a given rhythm (book sec. 10.1.2).

What pitch may come depends on where in the bar a note begins: a note of the tonic chord on a strong beat, a step
along the scale elsewhere. Who is not told the rhythm cannot know.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.music.solo import HIGHEST, LOWEST, allowed
from parnassus.text.choosing import Choose
from parnassus.text.reading import Reader, State

RHYTHMS = ((4, 4), (2, 2, 4), (3, 1, 4), (4, 3, 1), (1, 1, 2, 4), (2, 1, 1, 4), (3, 1, 3, 1), (4, 2, 1, 1))
"""How a bar may be parted, in eighths; all with equal chances."""
EIGHTHS, STRONG = 8, 4
"""Eighths of a bar, and how far its strong beats lie apart."""
BEGIN, FIRST_RHYTHM = 0, 1
"""Tokens: one begins a melody; then those of rhythm, a note of each length in each place of the bar."""
FIRST_PITCH = FIRST_RHYTHM + EIGHTHS * STRONG
VOCABULARY = FIRST_PITCH + HIGHEST - LOWEST + 1
CHORD = (0, 4, 7)
"""The notes of the tonic chord; all melodies are in C major."""


class Melodies(NamedTuple):
    """Lengths of the notes in eighths, and their MIDI pitches."""

    durations: Int[Tensor, "count notes"]
    pitches: Int[Tensor, "count notes"]


def places_in_bar(durations: Int[Tensor, "count notes"]) -> Int[Tensor, "count notes"]:
    """In which eighth of its bar each note begins, the first one in that of 0."""
    return (durations.cumsum(1) - durations) % EIGHTHS


def strong(durations: Int[Tensor, "count notes"]) -> Bool[Tensor, "count notes"]:
    """Which notes begin on a strong beat: the first or the fifth eighth."""
    return places_in_bar(durations) % STRONG == 0


def rhythms(count: int, notes: int, generator: torch.Generator) -> Int[Tensor, "{count} {notes}"]:
    """Lengths of the first `notes` notes of bars drawn from `RHYTHMS`."""
    drawn = torch.randint(len(RHYTHMS), (count, notes), generator=generator)  # bars enough
    rows = [[eighths for bar in row for eighths in RHYTHMS[bar]][:notes] for row in drawn.tolist()]
    return torch.tensor(rows)


def melodies(count: int, *, notes: int = 16, seed: int = 0) -> Melodies:
    """Melodies in C major: the notes that the metre allows, none further than a fifth, with equal chances."""
    if count < 1 or notes < 1:
        raise ValueError(f"need at least one melody of one note; got count={count}, notes={notes}")
    source = torch.Generator().manual_seed(seed)
    durations = rhythms(count, notes, source)
    pitches: list[Tensor] = []
    for on_beat in strong(durations).T:
        may = _law(pitches, on_beat)
        pitches.append(LOWEST + torch.multinomial(may.double(), 1, generator=source)[:, 0])
    return Melodies(durations, torch.stack(pitches, 1))


def melody_nats(music: Melodies) -> Float[Tensor, "count notes"]:
    """−log p(pitch | pitches before, rhythm) by the law of the melodies: the log of how many pitches it allows."""
    pitches = list(music.pitches.T)
    counts = [_law(pitches[:time], on_beat).sum(1) for time, on_beat in enumerate(strong(music.durations).T)]
    return torch.stack(counts, 1).double().log()


def rhythm_tokens(durations: Int[Tensor, "count notes"]) -> Int[Tensor, "count notes"]:
    """A token for each length in each place of the bar."""
    if bool(((durations < 1) | (durations > STRONG)).any()):
        raise ValueError(
            f"notes last 1 to {STRONG} eighths; got {int(durations.min())} to {int(durations.max())} eighths"
        )
    return FIRST_RHYTHM + STRONG * places_in_bar(durations) + durations - 1


def factorised(rhythm: Int[Tensor, "count notes"], pitches: Int[Tensor, "count notes"]) -> Int[Tensor, "count tokens"]:
    """The token that begins, then of every note its rhythm and its pitch: p = Π_n p(r_n | before) p(x_n | r_n, before).

    A model of it answers both questions: what comes next, and which pitches fit a rhythm that is given.
    """
    both = torch.stack([rhythm, pitches - LOWEST + FIRST_PITCH], -1).flatten(1)
    return torch.nn.functional.pad(both, (1, 0), value=BEGIN)


@torch.no_grad()
def melody_for(reader: Reader, rhythm: Int[Tensor, "count notes"], choose: Choose) -> Int[Tensor, "count notes"]:
    """Pitches x_n from p(x_n | r_1, x_1, …, r_n), one after the other; the rhythm is given (book sec. 10.1.2)."""
    if rhythm.shape[1] < 1:
        raise ValueError("a melody needs at least one note of rhythm; got none")
    state: State | None = None
    before, pitches = torch.full_like(rhythm[:, :1], BEGIN), []
    for time in range(rhythm.shape[1]):
        logits, state = reader.read(torch.cat([before, rhythm[:, time : time + 1]], 1), state)
        before = FIRST_PITCH + choose(logits[:, FIRST_PITCH:VOCABULARY])[:, None]
        pitches.append(before[:, 0] - FIRST_PITCH + LOWEST)
    return torch.stack(pitches, 1)


def strong_tone_share(pitches: Int[Tensor, "count notes"], durations: Int[Tensor, "count notes"]) -> float:
    """The share of the notes on strong beats that belong to the tonic chord."""
    return float(torch.isin(pitches % 12, torch.tensor(CHORD))[strong(durations)].double().mean())


def _law(pitches: list[Tensor], on_beat: Tensor) -> Tensor:
    c = torch.zeros_like(on_beat, dtype=torch.int64)  # the tonic, and the chord upon it
    before = pitches[-1] if pitches else torch.full_like(c, (LOWEST + HIGHEST) // 2)
    return allowed(before, c, c, beat=on_beat)
