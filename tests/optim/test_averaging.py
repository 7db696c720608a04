"""Averaged descent: by hand, on a coin, and what it refuses."""

import pytest
import torch

from parnassus.optim import averaged_descent, biased_coin, coin_slope


def test_three_steps_by_hand() -> None:
    """On ½w² with η = ½ the places are 8, 4, 2: their mean, and not the place they lead to, is the answer."""
    start = torch.tensor([8.0])
    torch.testing.assert_close(averaged_descent(lambda _, w: w, start, rate=0.5, steps=3), torch.tensor([14 / 3]))


def test_the_slope_may_depend_on_the_step() -> None:
    start = torch.zeros(2, 1)
    slope = averaged_descent(lambda t, w: torch.full_like(w, float(t)), start, rate=1.0, steps=4)
    torch.testing.assert_close(slope, torch.full((2, 1), -(0 + 0 + 1 + 3) / 4))


def test_coin_slopes_average_to_the_slope_of_the_coin() -> None:
    coin = biased_coin(0.3)
    w = torch.tensor([[-2.0], [0.4], [1.7]], dtype=torch.float64)
    slope = coin_slope(0.3, generator=torch.Generator().manual_seed(0))
    mean = torch.stack([slope(0, w) for _ in range(20_000)]).mean(0)
    torch.testing.assert_close(mean, coin.slopes(w), atol=0.03, rtol=0)
    torch.testing.assert_close(coin.slopes(w)[1], torch.tensor([-0.3]).double())


def test_the_coin_is_least_at_one() -> None:
    coin = biased_coin(0.2)
    places = torch.linspace(-3, 3, 61, dtype=torch.float64)[:, None]
    assert float(places[coin.excess(places).argmin()]) == pytest.approx(1.0)
    assert float(coin.excess(torch.tensor([[-1.0]]).double())) == pytest.approx(0.4)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"need rate > 0 and steps ≥ 1; got rate=0\.1, steps=0"):
        averaged_descent(lambda _, w: w, torch.ones(1), rate=0.1, steps=0)
    with pytest.raises(ValueError, match=r"0 < bias ≤ 1; got bias=0\.0"):
        biased_coin(0.0)
