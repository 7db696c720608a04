"""Key estimation from pitch-class counts (Krumhansl & Schmuckler)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

NAMES = ("C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B")
MAJOR, MINOR = (0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)
"""Semitones above the tonic: the major and the natural minor scale."""
MAJOR_PROFILE = (6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88)
MINOR_PROFILE = (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17)
"""Listeners' ratings of each pitch class within a key, from the tonic upwards (Krumhansl & Kessler 1982)."""


@dataclass(frozen=True)
class Key:
    """A tonic in semitones above C, and whether the key is minor.

    >>> Key(tonic=9, is_minor=True)
    Key(tonic=9, is_minor=True)
    """

    tonic: int
    is_minor: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.tonic < 12:
            raise ValueError(f"tonic must be a pitch class from 0 to 11; got tonic={self.tonic}")

    @property
    def scale(self) -> tuple[int, ...]:
        """The seven pitch classes, tonic first."""
        return tuple((self.tonic + step) % 12 for step in (MINOR if self.is_minor else MAJOR))

    def transpose(self, semitones: int, *, is_minor: bool = False) -> "Key":
        """The key `semitones` higher; of a major key 9 with `is_minor` is the relative minor, 7 the dominant."""
        return Key((self.tonic + semitones) % 12, is_minor)

    def __str__(self) -> str:
        return f"{NAMES[self.tonic]} {'minor' if self.is_minor else 'major'}"


KEYS = tuple(Key(tonic, is_minor) for is_minor in (False, True) for tonic in range(12))


def key_scores(pitches: Int[Tensor, "*batch time"]) -> Float[Tensor, "*batch 24"]:
    """Correlation of the counts of pitch classes with the profile of each of `KEYS` (Krumhansl & Schmuckler)."""
    counts = torch.nn.functional.one_hot(pitches % 12, 12).double().sum(-2)
    profiles = torch.stack(
        [
            torch.tensor(MINOR_PROFILE if key.is_minor else MAJOR_PROFILE, dtype=torch.float64).roll(key.tonic)
            for key in KEYS
        ]
    ).to(counts.device)
    counts, profiles = (x - x.mean(-1, keepdim=True) for x in (counts, profiles))
    spread = counts.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    correlation: Tensor = counts @ profiles.mT / (spread * profiles.norm(dim=-1))
    return correlation


def estimate_key(pitches: Int[Tensor, " time"]) -> Key:
    """The key with the highest score."""
    if not len(pitches):
        raise ValueError("pitches must not be empty")
    return KEYS[int(key_scores(pitches).argmax())]


def fraction_in_key(pitches: Int[Tensor, " time"], key: Key) -> float:
    """Fraction of the notes that belong to the scale."""
    return float(torch.isin(pitches % 12, torch.tensor(key.scale, device=pitches.device)).double().mean())
