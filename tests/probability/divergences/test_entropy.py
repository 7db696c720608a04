"""Entropy against SciPy and torch, and its estimates from counts."""

from math import log

import pytest
import torch
from scipy.stats import entropy as scipy_entropy
from torch.distributions import Categorical

from parnassus.probability import corrected_entropy, entropy, plug_in_entropy, standard_normal

P = standard_normal(20, 5).softmax(-1)


@pytest.mark.parametrize("base", [2.0, 10.0])
def test_entropy_matches_scipy_for_any_base(base: float) -> None:
    torch.testing.assert_close(entropy(P, base=base), torch.from_numpy(scipy_entropy(P, axis=-1, base=base)))


def test_entropy_in_nats_matches_torch() -> None:
    torch.testing.assert_close(entropy(P), Categorical(P).entropy())


def test_outcomes_of_probability_zero_are_ignored() -> None:
    assert float(entropy(torch.tensor([0.5, 0.5, 0.0]), base=2.0)) == pytest.approx(1.0)


def test_plug_in_and_corrected_entropy_of_counts() -> None:
    counts = torch.tensor([[2, 2, 0], [4, 0, 0]])
    torch.testing.assert_close(plug_in_entropy(counts), torch.tensor([log(2), 0.0], dtype=torch.float64))
    torch.testing.assert_close(corrected_entropy(counts)[0], torch.tensor(log(2) + 1 / 8, dtype=torch.float64))


def test_invalid_counts_raise_value_error() -> None:
    with pytest.raises(ValueError, match="counts must be non-negative"):
        plug_in_entropy(torch.tensor([1, -1]))
    with pytest.raises(ValueError, match="a positive sum"):
        plug_in_entropy(torch.tensor([0, 0]))
