"""Tokeniser for chorales: the voices of each time step in turn (book sec. 10.1.2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.arrays import accepts_arrays

SILENCE = -1


@dataclass(frozen=True)
class VoiceTokeniser:
    """Pitches from `lowest` to `highest` are tokens 2, 3, …; 0 starts a piece, 1 is silence.

    A step of four voices is four tokens, soprano first: p(chord | previous) = Π p(voice | voices above it, previous),
    so the negative log-likelihood of a step is the sum over four tokens.
    """

    lowest: int
    highest: int

    @classmethod
    def fit(cls, pieces: list[Int[Tensor, "_time _voices"]]) -> "VoiceTokeniser":
        """The tokeniser with the pitch range of these pieces."""
        pitches = torch.cat([piece[piece != SILENCE] for piece in pieces])
        if not len(pitches):
            raise ValueError("pieces must have at least one note; all are silent")
        return cls(int(pitches.min()), int(pitches.max()))

    @property
    def vocabulary(self) -> int:
        return self.highest - self.lowest + 3

    @accepts_arrays
    def encode(self, piece: Int[Tensor, "time voices"]) -> Int[Tensor, " tokens"]:
        """The tokens of a piece, with the start token first."""
        pitches = piece[piece != SILENCE]
        if len(pitches) and not self.lowest <= int(pitches.min()) <= int(pitches.max()) <= self.highest:
            raise ValueError(
                f"pitches must be from {self.lowest} to {self.highest}; "
                f"got {int(pitches.min())} to {int(pitches.max())}"
            )
        tokens = torch.where(piece == SILENCE, 1, piece - self.lowest + 2).flatten()
        return torch.cat([tokens.new_zeros(1), tokens])

    @accepts_arrays
    def decode(self, tokens: Int[Tensor, " tokens"], voices: int = 4) -> Int[Tensor, "time voices"]:
        """The piece of these tokens, without start tokens and an incomplete last step."""
        tokens = tokens[tokens != 0]
        chords = tokens[: len(tokens) // voices * voices].view(-1, voices)
        return torch.where(chords == 1, SILENCE, chords + self.lowest - 2)


def transpose(piece: Int[Tensor, "time voices"], semitones: int) -> Int[Tensor, "time voices"]:
    """The piece shifted by `semitones`; silence is unchanged."""
    return torch.where(piece == SILENCE, SILENCE, piece + semitones)
