"""Chorales as tokens: soprano, alto, tenor and bass of each step in turn (book sec. 10.1.2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

SILENCE = -1


@dataclass(frozen=True)
class VoiceTokens:
    """Pitches from `lowest` to `highest` as tokens 2, 3, …; 0 begins a piece, 1 is silence.

    A step of four voices is four tokens, the soprano first: p(chord | before) is the product of p(voice | voices
    above it, before), and the cost of a step the sum of four tokens' costs.
    """

    lowest: int
    highest: int

    @classmethod
    def fit(cls, pieces: list[Int[Tensor, "_time _voices"]]) -> "VoiceTokens":
        """The range that these pieces need."""
        heard = torch.cat([piece[piece != SILENCE] for piece in pieces])
        if not len(heard):
            raise ValueError("there must be at least one note; these pieces are silent")
        return cls(int(heard.min()), int(heard.max()))

    @property
    def vocabulary(self) -> int:
        return self.highest - self.lowest + 3

    def encode(self, piece: Int[Tensor, "time voices"]) -> Int[Tensor, " tokens"]:
        """The tokens of a piece, the one that begins it first."""
        heard = piece[piece != SILENCE]
        if len(heard) and not self.lowest <= int(heard.min()) <= int(heard.max()) <= self.highest:
            raise ValueError(
                f"these tokens reach from pitch {self.lowest} to {self.highest}; the piece has "
                f"{int(heard.min())} to {int(heard.max())}"
            )
        tokens = torch.where(piece == SILENCE, 1, piece - self.lowest + 2).flatten()
        return torch.cat([tokens.new_zeros(1), tokens])

    def decode(self, tokens: Int[Tensor, " tokens"], voices: int = 4) -> Int[Tensor, "time voices"]:
        """The piece that tokens stand for; the one that begins it and a chord cut short at the end are left out."""
        tokens = tokens[tokens != 0]
        chords = tokens[: len(tokens) // voices * voices].view(-1, voices)
        return torch.where(chords == 1, SILENCE, chords + self.lowest - 2)


def transposed(piece: Int[Tensor, "time voices"], semitones: int) -> Int[Tensor, "time voices"]:
    """The piece so many semitones higher; silence stays."""
    return torch.where(piece == SILENCE, SILENCE, piece + semitones)
