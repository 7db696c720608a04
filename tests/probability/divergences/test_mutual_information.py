"""Mutual information and conditional entropy of tables against hand computations and scikit-learn."""

from math import log

import pytest
import torch
from sklearn.metrics import mutual_info_score
from torch import Tensor

from parnassus.probability import (
    conditional_entropy,
    gaussian_mutual_information,
    joint_entropy,
    mutual_information,
)

BIT = torch.tensor([[0.5, 0.0], [0.25, 0.25]], dtype=torch.float64)
"""x is a fair bit; y is 0 where x = 0, else an independent fair bit."""


def float64_tensor(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def test_entropies_and_mutual_information_match_hand_computation() -> None:
    torch.testing.assert_close(joint_entropy(BIT, base=2.0), float64_tensor(1.5))
    torch.testing.assert_close(conditional_entropy(BIT.mT, base=2.0), float64_tensor(0.5))  # y given x
    conditional = 0.75 * (-(2 / 3) * log(2 / 3, 2) - (1 / 3) * log(1 / 3, 2))
    torch.testing.assert_close(conditional_entropy(BIT, base=2.0), float64_tensor(conditional))  # x given y
    torch.testing.assert_close(mutual_information(BIT, base=2.0), float64_tensor(1 - conditional))


def test_values_of_probability_zero_are_ignored() -> None:
    padded = torch.nn.functional.pad(BIT, (0, 1, 0, 1))
    torch.testing.assert_close(conditional_entropy(padded), conditional_entropy(BIT))
    torch.testing.assert_close(mutual_information(padded), mutual_information(BIT))


def test_batched_tables() -> None:
    tables = torch.stack([BIT, BIT.mT, torch.full((2, 2), 0.25).double()])
    torch.testing.assert_close(mutual_information(tables)[:2], mutual_information(BIT).expand(2))
    torch.testing.assert_close(mutual_information(tables)[2], float64_tensor(0.0))


def test_mutual_information_matches_scikit_learn() -> None:
    counts = torch.randint(1, 20, (4, 3), generator=torch.Generator().manual_seed(0))
    expected = mutual_info_score(None, None, contingency=counts.numpy())
    torch.testing.assert_close(mutual_information(counts.double() / counts.sum()), float64_tensor(expected))


def test_gaussian_mutual_information_in_bits() -> None:
    torch.testing.assert_close(gaussian_mutual_information(float64_tensor(3**0.5 / 2), base=2.0), float64_tensor(1.0))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="a row of joint sums to 2"):
        mutual_information(2 * BIT)
    with pytest.raises(ValueError, match="a row of joint sums to 2"):
        conditional_entropy(2 * BIT)
    with pytest.raises(ValueError, match=r"strictly between −1 and 1; got \|ρ\| = 1"):
        gaussian_mutual_information(float64_tensor(1.0))
