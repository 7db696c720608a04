"""Prefix codes: Shannon and Huffman code lengths, and codewords."""

from itertools import product

import pytest
import torch

from parnassus.information import expected_length, huffman_lengths, kraft_sum, prefix_codewords, shannon_lengths
from parnassus.probability import entropy, standard_normal

DYADIC = torch.tensor([0.125, 0.5, 0.125, 0.25], dtype=torch.float64)


def test_dyadic_distribution_is_coded_without_redundancy() -> None:
    assert shannon_lengths(DYADIC).tolist() == [3, 1, 3, 2]
    assert huffman_lengths(DYADIC).tolist() == [3, 1, 3, 2]
    assert float(expected_length(DYADIC, huffman_lengths(DYADIC))) == float(entropy(DYADIC, base=2.0)) == 1.75


def test_shannon_lengths_are_rounded_information_content() -> None:
    q = torch.tensor([0.6, 0.26, 0.13, 0.01], dtype=torch.float64)  # 0.74, 1.94, 2.94 and 6.64 bits
    assert shannon_lengths(q).tolist() == [1, 2, 3, 7]
    uniform = torch.full((3,), 1 / 3, dtype=torch.float64)  # 1.58 bits
    assert shannon_lengths(uniform).tolist() == [2, 2, 2]
    uneven = torch.tensor([0.45, 0.55], dtype=torch.float64)  # 1.15 and 0.86 bits
    assert shannon_lengths(uneven).tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(5))
def test_huffman_codes_are_optimal(seed: int) -> None:
    """Compared with all lengths from 1 to 4 that satisfy Kraft's inequality."""
    q = standard_normal(5, seed=seed).mul(2).softmax(-1)
    candidates = (torch.tensor(lengths) for lengths in product(range(1, 5), repeat=5))
    best = min(float(expected_length(q, lengths)) for lengths in candidates if float(kraft_sum(lengths)) <= 1)
    assert float(expected_length(q, huffman_lengths(q))) == pytest.approx(best)
    assert float(kraft_sum(huffman_lengths(q))) == 1.0


def test_certain_outcome_has_length_zero() -> None:
    assert huffman_lengths(torch.ones(1)).tolist() == [0]
    assert shannon_lengths(torch.ones(1)).tolist() == [0]


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="an outcome of probability 0 has no codeword"):
        shannon_lengths(torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match="must sum to one"):
        huffman_lengths(torch.tensor([0.5, 0.1]))
    with pytest.raises(ValueError, match="one entry per outcome; got 4 outcomes, 3 lengths"):
        expected_length(DYADIC, torch.tensor([1, 2, 3]))


def test_codewords_have_their_lengths_and_are_prefix_free() -> None:
    assert prefix_codewords(torch.tensor([3, 1, 3, 2])) == ["110", "0", "111", "10"]
    assert prefix_codewords(torch.tensor([0])) == [""]
    lengths = shannon_lengths(torch.tensor([0.6, 0.26, 0.13, 0.01], dtype=torch.float64))
    codewords = prefix_codewords(lengths)
    assert [len(codeword) for codeword in codewords] == lengths.tolist()
    assert not any(other.startswith(codeword) for codeword in codewords for other in codewords if other != codeword)


@pytest.mark.parametrize("lengths", [[1, 1, 2], [0, 1]])
def test_lengths_that_violate_krafts_inequality_raise_value_error(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="no prefix code has these lengths"):
        prefix_codewords(torch.tensor(lengths))
