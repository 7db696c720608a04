"""Pairings and moments compared with hand computations."""

import pytest
import torch

from parnassus.probability import (
    Gaussian,
    moment_by_differentiation,
    moment_by_pairings,
    moment_by_recursion,
    pairings,
)

SIGMA = torch.tensor([[1.0, 0.3, -0.2], [0.3, 2.0, 0.5], [-0.2, 0.5, 0.7]], dtype=torch.float64)


def test_pairings_of_four() -> None:
    assert set(pairings(4)) == {((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))}
    assert list(pairings(0)) == [()]
    assert list(pairings(3)) == []


def test_pairings_contain_each_index_once() -> None:
    for pairing in pairings(6):
        assert sorted(index for pair in pairing for index in pair) == list(range(6))


@pytest.mark.parametrize("moment", [moment_by_pairings, moment_by_recursion])
def test_moments_match_hand_computation(moment: type) -> None:
    assert float(moment(SIGMA, ())) == 1.0
    assert float(moment(SIGMA, (0, 1))) == pytest.approx(0.3)
    assert float(moment(SIGMA, (0, 0, 1, 1))) == pytest.approx(1.0 * 2.0 + 2 * 0.3**2)
    assert float(moment(SIGMA, (2, 2, 2, 2))) == pytest.approx(3 * 0.7**2)
    assert float(moment(SIGMA, (0, 1, 2))) == 0.0
    assert float(moment(SIGMA, (1,) * 8)) == pytest.approx(105 * 2.0**4)


def test_moments_by_differentiation_match_hand_computation() -> None:
    distribution = Gaussian(torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64), SIGMA)
    assert float(moment_by_differentiation(distribution, (0,))) == pytest.approx(0.5)
    assert float(moment_by_differentiation(distribution, (0, 1))) == pytest.approx(0.3 - 0.5)
    assert float(moment_by_differentiation(distribution, (2, 2, 2))) == pytest.approx(2.0**3 + 3 * 2.0 * 0.7)


def test_methods_agree_on_a_long_product() -> None:
    indices = (0, 1, 2, 2, 1, 0, 0, 1)
    expected = moment_by_recursion(SIGMA, indices)
    torch.testing.assert_close(moment_by_pairings(SIGMA, indices), expected)
    centred = Gaussian(torch.zeros(3, dtype=torch.float64), SIGMA)
    torch.testing.assert_close(moment_by_differentiation(centred, indices[:6]), moment_by_recursion(SIGMA, indices[:6]))


def test_invalid_indices_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"indices must lie between 0 and 2; got \[0, 3\]"):
        moment_by_pairings(SIGMA, (0, 3))
    with pytest.raises(ValueError, match=r"indices must lie between 0 and 2; got \[-1\]"):
        moment_by_recursion(SIGMA, (-1,))
    with pytest.raises(ValueError, match="count must not be negative; got count=-2"):
        list(pairings(-2))
