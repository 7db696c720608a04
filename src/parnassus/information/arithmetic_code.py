"""Arithmetic coding: a whole message as one binary fraction, without rounding per symbol (Diehl sec. 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class ArithmeticCode:
    """Arithmetic code over symbols 0, 1, …, where symbol i has probability q_i = frequencies[i] / Σ frequencies.

    Each symbol narrows the current subinterval of [0, 1) in proportion to its probability, so a message corresponds to
    an interval of width Q(message). A binary fraction of at most −log₂ Q(message) + 2 digits lies in it and identifies
    it: an overhead of two bits per message, where a prefix code may need one per symbol. Exact integer arithmetic.

    >>> code = ArithmeticCode((3, 1))
    >>> bits = code.encode([0, 0, 1, 0])
    >>> bits, code.decode(bits, 4)
    ('01110', [0, 0, 1, 0])
    """

    frequencies: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.frequencies or min(self.frequencies) < 1:
            raise ValueError(f"frequencies must be at least 1; got {self.frequencies}")

    def encode(self, symbols: Sequence[int]) -> str:
        """The message as a string of 0 and 1."""
        if any(not 0 <= symbol < len(self.frequencies) for symbol in symbols):
            raise ValueError(
                f"symbols must lie between 0 and {len(self.frequencies) - 1}; got {min(symbols)} … {max(symbols)}"
            )
        total, cumulative = sum(self.frequencies), [0, *accumulate(self.frequencies)]
        low, width, scale = 0, 1, 1  # the interval [low, low + width) / scale
        for symbol in symbols:
            low = low * total + cumulative[symbol] * width
            width *= self.frequencies[symbol]
            scale *= total
        digits = (-(-scale // width) - 1).bit_length() + 1  # 2^−digits ≤ width / (2 scale)
        number = -((-low << digits) // scale)  # the smallest multiple of 2^−digits in the interval
        return f"{number:0{digits}b}"

    def decode(self, bits: str, count: int) -> list[int]:
        """The first `count` symbols of the message."""
        if not bits or not set(bits) <= {"0", "1"}:
            raise ValueError(f"a message must be a string of 0 and 1; got {bits[:20]!r}")
        total, cumulative = sum(self.frequencies), [0, *accumulate(self.frequencies)]
        number, scale = int(bits, 2), 1 << len(bits)
        symbols = []
        for _ in range(count):
            scaled = number * total
            symbol = next(i for i in reversed(range(len(self.frequencies))) if cumulative[i] * scale <= scaled)
            number, scale = scaled - cumulative[symbol] * scale, scale * self.frequencies[symbol]
            symbols.append(symbol)
        return symbols
