"""Example sequences for modes of convergence, and their moments."""

import pytest
import torch

from parnassus.probability import (
    alternating_sign_sequence,
    spike_sequence,
    typewriter_block,
    typewriter_sequence,
    vanishing_sequence,
)


def test_typewriter_sequence_matches_hand_computation() -> None:
    m, j = typewriter_block(torch.arange(1, 10))
    assert m.tolist() == [2, 2, 3, 3, 3, 4, 4, 4, 4]
    assert j.tolist() == [1, 2, 1, 2, 3, 1, 2, 3, 4]
    values = typewriter_sequence(torch.tensor([0.0, 0.3, 0.5, 0.99]), torch.arange(1, 10)).int().tolist()
    assert values == [
        [1, 0, 1, 0, 0, 1, 0, 0, 0],
        [1, 0, 1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 1, 0, 0, 0, 1, 0],
        [0, 1, 0, 0, 1, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize("m", [2, 1_000, 94_906_266, 1_000_000_007])
def test_typewriter_block_of_first_and_last_index(m: int) -> None:
    ends = torch.tensor([m * (m - 1) // 2, m * (m + 1) // 2 - 1])
    blocks, positions = typewriter_block(ends)
    assert blocks.tolist() == [m, m]
    assert positions.tolist() == [1, m]


@pytest.mark.parametrize(("power", "order"), [(1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (1 / 3, 2.0)])
def test_spikes_have_the_documented_moments(power: float, order: float) -> None:
    omega = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    n = torch.tensor([1, 10, 100])
    moments = spike_sequence(omega, n, power=power).pow(order).mean(0)
    torch.testing.assert_close(moments, n.double() ** (power * order - 1))


def test_alternating_and_vanishing_sequences_match_hand_computation() -> None:
    x, n = torch.tensor([1.0, -2.0]), torch.tensor([1, 2, 4])
    assert alternating_sign_sequence(x, n).tolist() == [[-1.0, 1.0, 1.0], [2.0, -2.0, -2.0]]
    assert vanishing_sequence(x, n).tolist() == [[1.0, 0.5, 0.25], [-2.0, -1.0, -0.5]]


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="n must be at least 1; got n=0"):
        typewriter_block(torch.arange(3))
    with pytest.raises(ValueError, match=r"omega must lie in \[0, 1\); got values from 0.5 to 1"):
        spike_sequence(torch.tensor([0.5, 1.0]), torch.tensor([1]))
