"""Random walks against the binomial distribution, and histories compared with hand computations."""

from math import comb

import pytest
import torch

from parnassus.probability import lift_to_histories, random_walk


def test_walk_has_unit_steps_and_binomial_end() -> None:
    paths = random_walk(200_000, steps=5, up=0.3, generator=torch.Generator().manual_seed(0))
    assert paths.shape == (200_000, 6)
    assert torch.equal(paths[:, 0].abs(), torch.ones(200_000, dtype=torch.int64))
    assert torch.equal(paths.diff(dim=1).abs().unique(), torch.tensor([1]))
    frequencies = torch.bincount((paths[:, -1] + 6) // 2, minlength=7) / 200_000
    expected = torch.tensor([comb(6, k) * 0.3**k * 0.7 ** (6 - k) for k in range(7)])
    torch.testing.assert_close(frequencies, expected, atol=0.005, rtol=0)


@pytest.mark.parametrize(("up", "end"), [(0.0, -8), (1.0, 8)])
def test_deterministic_walk_is_a_straight_line(up: float, end: int) -> None:
    assert random_walk(4, steps=7, up=up)[:, -1].tolist() == [end] * 4


def test_history_lift_contains_the_past_states() -> None:
    lifted = lift_to_histories(torch.tensor([[3, 1, 2], [1, 1, 1]]))
    assert lifted.tolist() == [[[3, 0, 0], [3, 1, 0], [3, 1, 2]], [[1, 0, 0], [1, 1, 0], [1, 1, 1]]]


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="need count ≥ 1 and steps ≥ 0; got count=0, steps=3"):
        random_walk(0, steps=3)
    with pytest.raises(ValueError, match=r"up must lie in \[0, 1\]; got up=1.5"):
        random_walk(1, steps=3, up=1.5)
    with pytest.raises(ValueError, match="0 is the padding value; got a state 0"):
        lift_to_histories(torch.tensor([[0, 1]]))
