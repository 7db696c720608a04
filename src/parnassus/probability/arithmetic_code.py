"""Arithmetic coding: a whole message as one binary number, with no waste for each letter (Diehl sec. 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class ArithmeticCode:
    """Spells messages over letters 0, 1, …, where letter i has probability q_i = frequencies[i] / Σ frequencies.

    A message owns the part of [0, 1) that its letters cut out, one after the other, each its share of what is left.
    That part is Q(message) wide, so a binary number of at most −log₂ Q(message) + 2 digits lies in it and names it: two
    bits of waste for the message, where a prefix code may waste one for each letter. Exact, in whole numbers.
    """

    frequencies: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.frequencies or min(self.frequencies) < 1:
            raise ValueError(f"every letter needs a frequency of at least 1; got {self.frequencies}")

    def encode(self, letters: Sequence[int]) -> str:
        """The message as a string of 0 and 1."""
        if any(not 0 <= letter < len(self.frequencies) for letter in letters):
            raise ValueError(
                f"letters must lie between 0 and {len(self.frequencies) - 1}; got {min(letters)} … {max(letters)}"
            )
        total, before = sum(self.frequencies), [0, *accumulate(self.frequencies)]
        low, width, whole = 0, 1, 1  # the part [low, low + width) / whole
        for letter in letters:
            low = low * total + before[letter] * width
            width *= self.frequencies[letter]
            whole *= total
        digits = (-(-whole // width) - 1).bit_length() + 1  # 2^−digits ≤ width / (2 whole)
        number = -((-low << digits) // whole)  # the first such number not below the part's beginning
        return f"{number:0{digits}b}"

    def decode(self, bits: str, count: int) -> list[int]:
        """The first `count` letters of the message."""
        if not bits or not set(bits) <= {"0", "1"}:
            raise ValueError(f"a message must be a string of 0 and 1; got {bits[:20]!r}")
        total, before = sum(self.frequencies), [0, *accumulate(self.frequencies)]
        number, whole = int(bits, 2), 1 << len(bits)
        letters = []
        for _ in range(count):
            place = number * total
            letter = next(i for i in reversed(range(len(self.frequencies))) if before[i] * whole <= place)
            number, whole = place - before[letter] * whole, whole * self.frequencies[letter]
            letters.append(letter)
        return letters
