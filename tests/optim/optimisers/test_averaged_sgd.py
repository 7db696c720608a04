"""Averaged SGD: hand-computed steps, a biased coin and invalid arguments."""

import pytest
import torch

from parnassus.optim import averaged_sgd, biased_coin, coin_subgradient


def test_three_steps_match_hand_computed_values() -> None:
    """On ½w² with η = ½ the iterates are 8, 4, 2; the result is their mean, not the last iterate."""
    start = torch.tensor([8.0])
    torch.testing.assert_close(averaged_sgd(lambda _, w: w, start, learning_rate=0.5, steps=3), torch.tensor([14 / 3]))


def test_subgradient_can_depend_on_the_step() -> None:
    start = torch.zeros(2, 1)
    mean = averaged_sgd(lambda t, w: torch.full_like(w, float(t)), start, learning_rate=1.0, steps=4)
    torch.testing.assert_close(mean, torch.full((2, 1), -(0 + 0 + 1 + 3) / 4))


def test_mean_coin_subgradient_is_the_gradient() -> None:
    coin = biased_coin(0.3)
    w = torch.tensor([[-2.0], [0.4], [1.7]], dtype=torch.float64)
    subgradient = coin_subgradient(0.3, generator=torch.Generator().manual_seed(0))
    mean = torch.stack([subgradient(0, w) for _ in range(20_000)]).mean(0)
    torch.testing.assert_close(mean, coin.gradients(w), atol=0.03, rtol=0)
    torch.testing.assert_close(coin.gradients(w)[1], torch.tensor([-0.3]).double())


def test_minimiser_of_the_coin_is_one() -> None:
    coin = biased_coin(0.2)
    points = torch.linspace(-3, 3, 61, dtype=torch.float64)[:, None]
    assert float(points[coin.excess(points).argmin()]) == pytest.approx(1.0)
    assert float(coin.excess(torch.tensor([[-1.0]]).double())) == pytest.approx(0.4)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"need learning_rate > 0 and steps ≥ 1; got learning_rate=0\.1, steps=0"):
        averaged_sgd(lambda _, w: w, torch.ones(1), learning_rate=0.1, steps=0)
    with pytest.raises(ValueError, match=r"0 < bias ≤ 1; got bias=0\.0"):
        biased_coin(0.0)
