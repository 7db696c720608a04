"""Arithmetic coding: decoding inverts encoding, and the length is that of the ideal code within two bits."""

from itertools import pairwise, product
from math import log2

import pytest

from parnassus.information import ArithmeticCode


@pytest.mark.parametrize("frequencies", [(1,), (1, 1), (7, 1), (3, 5, 2, 1), (1, 1_000)])
def test_every_short_message_comes_back(frequencies: tuple[int, ...]) -> None:
    code = ArithmeticCode(frequencies)
    for length in range(5):
        for letters in product(range(len(frequencies)), repeat=length):
            assert code.decode(code.encode(letters), length) == list(letters)


def test_a_message_takes_its_surprise_and_at_most_two_bits() -> None:
    code = ArithmeticCode((3, 5, 2))
    for letters in product(range(3), repeat=6):
        surprise = -sum(log2(code.frequencies[letter] / 10) for letter in letters)
        assert surprise <= len(code.encode(letters)) <= surprise + 2


def test_no_message_is_the_beginning_of_another_of_its_length() -> None:
    code = ArithmeticCode((3, 1, 1))
    words = sorted(code.encode(letters) for letters in product(range(3), repeat=4))
    assert len(set(words)) == 81
    assert not any(longer.startswith(word) for word, longer in pairwise(words))


def test_what_cannot_be_spelled_is_rejected() -> None:
    with pytest.raises(ValueError, match="frequencies must be at least 1; got"):
        ArithmeticCode((1, 0))
    with pytest.raises(ValueError, match="symbols must lie between 0 and 1; got 0 … 2"):
        ArithmeticCode((1, 1)).encode([0, 2])
    with pytest.raises(ValueError, match="string of 0 and 1"):
        ArithmeticCode((1, 1)).decode("01x", 2)
