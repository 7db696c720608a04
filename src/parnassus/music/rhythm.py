"""Synthetic melodies with rhythm and pitch, and generation of a melody for a given rhythm (book sec. 10.1.2).

The allowed pitches depend on the position of a note in the bar: a chord tone on a strong beat, a scale step elsewhere.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.music.solo import HIGHEST, LOWEST, allowed_pitches
from parnassus.text.autoregressive_model import AutoregressiveModel, State
from parnassus.text.sampling import TokenSampler

RHYTHMS = ((4, 4), (2, 2, 4), (3, 1, 4), (4, 3, 1), (1, 1, 2, 4), (2, 1, 1, 4), (3, 1, 3, 1), (4, 2, 1, 1))
"""Rhythms of a bar, in eighths; sampled uniformly."""
EIGHTHS, STRONG = 8, 4
"""Eighths per bar, and eighths between strong beats."""
BEGIN, FIRST_RHYTHM = 0, 1
"""Token ids: start of a melody, then rhythm tokens (duration and position in the bar), then pitch tokens."""
FIRST_PITCH = FIRST_RHYTHM + EIGHTHS * STRONG
VOCABULARY = FIRST_PITCH + HIGHEST - LOWEST + 1
CHORD = (0, 4, 7)
"""Pitch classes of the tonic chord; all melodies are in C major."""


class Melodies(NamedTuple):
    """Durations of the notes in eighths, and MIDI pitches.

    >>> Melodies(durations=torch.tensor([[2, 2, 4]]), pitches=torch.tensor([[60, 62, 64]])).durations.sum().item()
    8
    """

    durations: Int[Tensor, "count notes"]
    pitches: Int[Tensor, "count notes"]


def bar_positions(durations: Int[Tensor, "count notes"]) -> Int[Tensor, "count notes"]:
    """The eighth of its bar in which each note begins, from 0."""
    return (durations.cumsum(1) - durations) % EIGHTHS


def is_strong_beat(durations: Int[Tensor, "count notes"]) -> Bool[Tensor, "count notes"]:
    """Whether each note begins on a strong beat: the first or fifth eighth."""
    return bar_positions(durations) % STRONG == 0


def sample_rhythms(count: int, notes: int, generator: torch.Generator) -> Int[Tensor, "{count} {notes}"]:
    """Durations of the first `notes` notes of bars sampled from `RHYTHMS`."""
    indices = torch.randint(len(RHYTHMS), (count, notes), generator=generator)  # at least enough bars
    rows = [[eighths for bar in row for eighths in RHYTHMS[bar]][:notes] for row in indices.tolist()]
    return torch.tensor(rows)


def generate_melodies(count: int, *, notes: int = 16, seed: int = 0) -> Melodies:
    """Random melodies in C major: uniform over the pitches that the metre allows, at most a fifth away."""
    if count < 1 or notes < 1:
        raise ValueError(f"count and notes must be at least 1; got count={count}, notes={notes}")
    generator = torch.Generator().manual_seed(seed)
    durations = sample_rhythms(count, notes, generator)
    pitches: list[Tensor] = []
    for on_beat in is_strong_beat(durations).T:
        allowed = _allowed_pitches(pitches, on_beat)
        pitches.append(LOWEST + torch.multinomial(allowed.double(), 1, generator=generator)[:, 0])
    return Melodies(durations, torch.stack(pitches, 1))


def melody_nll(music: Melodies) -> Float[Tensor, "count notes"]:
    """−log p(pitch | previous pitches, rhythm) under the generating distribution: log number of allowed pitches."""
    pitches = list(music.pitches.T)
    counts = [
        _allowed_pitches(pitches[:time], on_beat).sum(1)
        for time, on_beat in enumerate(is_strong_beat(music.durations).T)
    ]
    return torch.stack(counts, 1).double().log()


def rhythm_tokens(durations: Int[Tensor, "count notes"]) -> Int[Tensor, "count notes"]:
    """One token for each duration and position in the bar."""
    if bool(((durations < 1) | (durations > STRONG)).any()):
        raise ValueError(
            f"durations must be from 1 to {STRONG} eighths; got {int(durations.min())} to {int(durations.max())}"
        )
    return FIRST_RHYTHM + STRONG * bar_positions(durations) + durations - 1


def interleave_tokens(
    rhythm: Int[Tensor, "count notes"], pitches: Int[Tensor, "count notes"]
) -> Int[Tensor, "count tokens"]:
    """Start token, then rhythm and pitch of each note: p = Π_n p(r_n | r_<n, x_<n) p(x_n | r_≤n, x_<n).

    A model of this sequence can both continue a melody and find pitches for a given rhythm.
    """
    tokens = torch.stack([rhythm, pitches - LOWEST + FIRST_PITCH], -1).flatten(1)
    return torch.nn.functional.pad(tokens, (1, 0), value=BEGIN)


@torch.no_grad()
def generate_melody(
    model: AutoregressiveModel, rhythm: Int[Tensor, "count notes"], sampler: TokenSampler
) -> Int[Tensor, "count notes"]:
    """Sample pitches x_n from p(x_n | r_1, x_1, …, r_n) for a given rhythm (book sec. 10.1.2)."""
    if rhythm.shape[1] < 1:
        raise ValueError("rhythm must have at least one note; got none")
    state: State | None = None
    before, pitches = torch.full_like(rhythm[:, :1], BEGIN), []
    for time in range(rhythm.shape[1]):
        logits, state = model.read(torch.cat([before, rhythm[:, time : time + 1]], 1), state)
        before = FIRST_PITCH + sampler(logits[:, FIRST_PITCH:VOCABULARY])[:, None]
        pitches.append(before[:, 0] - FIRST_PITCH + LOWEST)
    return torch.stack(pitches, 1)


def strong_chord_tone_fraction(pitches: Int[Tensor, "count notes"], durations: Int[Tensor, "count notes"]) -> float:
    """Fraction of the notes on strong beats that belong to the tonic chord."""
    return float(torch.isin(pitches % 12, torch.tensor(CHORD))[is_strong_beat(durations)].double().mean())


def _allowed_pitches(pitches: list[Tensor], on_beat: Tensor) -> Tensor:
    c = torch.zeros_like(on_beat, dtype=torch.int64)  # tonic and tonic chord
    before = pitches[-1] if pitches else torch.full_like(c, (LOWEST + HIGHEST) // 2)
    return allowed_pitches(before, c, c, beat=on_beat)
