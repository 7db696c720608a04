"""Draws against the exact probabilities, for every network that can stand in a pixel model."""

from collections.abc import Callable
from math import log

import pytest
import torch
from torch import nn

from parnassus.flows import PixelModel, binarise, bits_per_pixel, gated_pixelcnn, mean_nll, pixel_rnn, pixelcnn

MAKERS = pytest.mark.parametrize("make", [pixelcnn, gated_pixelcnn, pixel_rnn])
Maker = Callable[..., PixelModel]


@MAKERS
def test_draws_follow_the_exact_law(make: Maker) -> None:
    torch.manual_seed(0)
    model = make((2, 2))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)  # far from uniform
        pictures = torch.cartesian_prod(*[torch.arange(2)] * 4).reshape(-1, 2, 2)
        probabilities = model.log_prob(pictures).exp()
    drawn = model.sample(40_000).flatten(1) @ torch.tensor([8, 4, 2, 1])
    torch.testing.assert_close(torch.bincount(drawn, minlength=16) / 40_000, probabilities, atol=0.01, rtol=0)
    assert float(probabilities.std()) > 0.005


@MAKERS
def test_completing_keeps_the_rows_given_and_ignores_the_rest(make: Maker) -> None:
    torch.manual_seed(0)
    model, x = make((3, 3)), torch.randint(2, (20, 3, 3))
    torch.manual_seed(2)
    first = model.complete(x, kept_rows=2)
    torch.manual_seed(2)
    other = x.clone()
    other[:, 2] = 1 - other[:, 2]
    assert torch.equal(first, model.complete(other, kept_rows=2))
    assert torch.equal(first[:, :2], x[:, :2])
    assert torch.equal(model.complete(x, kept_rows=3), x)


@MAKERS
def test_a_cold_draw_takes_the_most_likely_value_each_time(make: Maker) -> None:
    torch.manual_seed(0)
    model = make((3, 4), levels=3).double()
    cold = model.sample(3, temperature=1e-6)
    with torch.no_grad():
        assert torch.equal(model(cold).argmax(1), cold)


@MAKERS
def test_the_loss_is_the_likelihood_of_a_pixel_and_reaches_every_weight(make: Maker) -> None:
    torch.manual_seed(0)
    model, x = make((3, 3)), torch.randint(2, (5, 3, 3))
    loss = model.loss(x)
    torch.testing.assert_close(loss, -model.log_prob(x).mean() / 9)
    loss.backward()
    grads = [parameter.grad for parameter in model.parameters()]
    assert all(grad is not None and bool(grad.isfinite().all()) for grad in grads)


def test_the_mean_nll_is_that_without_dropout_and_leaves_the_mode() -> None:
    torch.manual_seed(0)
    model, x = pixelcnn((3, 3), dropout=0.5), torch.randint(2, (700, 3, 3))
    nll = mean_nll(model, x)
    assert model.training
    with torch.no_grad():
        assert nll == pytest.approx(-float(model.eval().log_prob(x).mean()), rel=1e-5)


def test_pixels_above_one_half_become_one() -> None:
    assert binarise(torch.tensor([[[[0.0, 0.5], [0.51, 1.0]]]])).tolist() == [[[0, 0], [1, 1]]]
    with pytest.raises(ValueError, match="one channel; got channels=3"):
        binarise(torch.zeros(1, 3, 2, 2))


def test_a_fair_coin_costs_a_bit() -> None:
    assert bits_per_pixel(64 * log(2), 64) == pytest.approx(1.0)


def test_invalid_arguments_raise_an_error() -> None:
    model = pixelcnn((3, 3), channels=4, blocks=1)
    with pytest.raises(ValueError, match="`pixel_logits`; got Conv2d"):
        PixelModel(nn.Conv2d(1, 2, 1), (3, 3))
    with pytest.raises(ValueError, match="from 0 to 1; got values from 0 to 2"):
        model.log_prob(torch.tensor([[[0, 1, 2]] * 3]))
    with pytest.raises(ValueError, match="temperature must be positive; got temperature=0"):
        model.sample(1, temperature=0.0)
    with pytest.raises(ValueError, match="from 0 to 3; got kept_rows=4"):
        model.complete(torch.zeros(1, 3, 3, dtype=torch.int64), kept_rows=4)
    with pytest.raises(ValueError, match="at least 1; got pixels=0"):
        bits_per_pixel(1.0, 0)
