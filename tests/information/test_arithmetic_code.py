"""Arithmetic coding: lossless decoding, code lengths and prefix-free codewords."""

from itertools import pairwise, product
from math import log2

import pytest

from parnassus.information import ArithmeticCode


@pytest.mark.parametrize("frequencies", [(1,), (1, 1), (7, 1), (3, 5, 2, 1), (1, 1_000)])
def test_decoding_inverts_encoding(frequencies: tuple[int, ...]) -> None:
    code = ArithmeticCode(frequencies)
    for length in range(5):
        for symbols in product(range(len(frequencies)), repeat=length):
            assert code.decode(code.encode(symbols), length) == list(symbols)


def test_code_length_is_within_two_bits_of_the_ideal_length() -> None:
    code = ArithmeticCode((3, 5, 2))
    for symbols in product(range(3), repeat=6):
        ideal_length = -sum(log2(code.frequencies[symbol] / 10) for symbol in symbols)
        assert ideal_length <= len(code.encode(symbols)) <= ideal_length + 2


def test_no_codeword_is_a_prefix_of_another() -> None:
    code = ArithmeticCode((3, 1, 1))
    codewords = sorted(code.encode(symbols) for symbols in product(range(3), repeat=4))
    assert len(set(codewords)) == 81
    assert not any(following.startswith(codeword) for codeword, following in pairwise(codewords))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="frequencies must be at least 1; got"):
        ArithmeticCode((1, 0))
    with pytest.raises(ValueError, match="symbols must lie between 0 and 1; got 0 … 2"):
        ArithmeticCode((1, 1)).encode([0, 2])
    with pytest.raises(ValueError, match="string of 0 and 1"):
        ArithmeticCode((1, 1)).decode("01x", 2)
