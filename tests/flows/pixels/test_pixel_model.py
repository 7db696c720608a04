"""Samples, completions and likelihoods of pixel models with every network."""

from collections.abc import Callable
from math import log

import pytest
import torch
from torch import nn

from parnassus.flows import PixelModel, bits_per_pixel, gated_pixelcnn, mean_nll, pixel_rnn, pixelcnn, threshold_pixels

MODELS = pytest.mark.parametrize("make_model", [pixelcnn, gated_pixelcnn, pixel_rnn])
Builder = Callable[..., PixelModel]


@MODELS
def test_samples_follow_the_exact_distribution(make_model: Builder) -> None:
    torch.manual_seed(0)
    model = make_model((2, 2))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)  # far from uniform
        images = torch.cartesian_prod(*[torch.arange(2)] * 4).reshape(-1, 2, 2)
        probabilities = model.log_prob(images).exp()
    samples = model.sample(40_000).flatten(1) @ torch.tensor([8, 4, 2, 1])
    torch.testing.assert_close(torch.bincount(samples, minlength=16) / 40_000, probabilities, atol=0.01, rtol=0)
    assert float(probabilities.std()) > 0.005


@MODELS
def test_completions_keep_the_given_rows_and_ignore_other_rows(make_model: Builder) -> None:
    torch.manual_seed(0)
    model, x = make_model((3, 3)), torch.randint(2, (20, 3, 3))
    torch.manual_seed(2)
    first = model.complete(x, kept_rows=2)
    torch.manual_seed(2)
    other = x.clone()
    other[:, 2] = 1 - other[:, 2]
    assert torch.equal(first, model.complete(other, kept_rows=2))
    assert torch.equal(first[:, :2], x[:, :2])
    assert torch.equal(model.complete(x, kept_rows=3), x)


@MODELS
def test_low_temperature_samples_are_the_most_likely_values(make_model: Builder) -> None:
    torch.manual_seed(0)
    model = make_model((3, 4), levels=3).double()
    samples = model.sample(3, temperature=1e-6)
    with torch.no_grad():
        assert torch.equal(model(samples).argmax(1), samples)


@MODELS
def test_loss_is_the_nll_per_pixel_and_all_parameters_receive_gradients(make_model: Builder) -> None:
    torch.manual_seed(0)
    model, x = make_model((3, 3)), torch.randint(2, (5, 3, 3))
    loss = model.loss(x)
    torch.testing.assert_close(loss, -model.log_prob(x).mean() / 9)
    loss.backward()
    grads = [parameter.grad for parameter in model.parameters()]
    assert all(grad is not None and bool(grad.isfinite().all()) for grad in grads)


def test_mean_nll_is_evaluated_without_dropout_and_keeps_the_mode() -> None:
    torch.manual_seed(0)
    model, x = pixelcnn((3, 3), dropout=0.5), torch.randint(2, (700, 3, 3))
    nll = mean_nll(model, x)
    assert model.training
    with torch.no_grad():
        assert nll == pytest.approx(-float(model.eval().log_prob(x).mean()), rel=1e-5)


def test_threshold_pixels() -> None:
    assert threshold_pixels(torch.tensor([[[[0.0, 0.5], [0.51, 1.0]]]])).tolist() == [[[0, 0], [1, 1]]]
    with pytest.raises(ValueError, match="one channel; got channels=3"):
        threshold_pixels(torch.zeros(1, 3, 2, 2))


def test_uniform_binary_pixel_has_one_bit() -> None:
    assert bits_per_pixel(64 * log(2), 64) == pytest.approx(1.0)


def test_invalid_arguments_raise_value_error() -> None:
    model = pixelcnn((3, 3), channels=4, blocks=1)
    with pytest.raises(ValueError, match="`pixel_logits`; got Conv2d"):
        PixelModel(nn.Conv2d(1, 2, 1), (3, 3))
    with pytest.raises(ValueError, match="pixels must lie between 0 and 1; got 0 to 2"):
        model.log_prob(torch.tensor([[[0, 1, 2]] * 3]))
    with pytest.raises(ValueError, match="temperature must be positive; got temperature=0"):
        model.sample(1, temperature=0.0)
    with pytest.raises(ValueError, match="from 0 to 3; got kept_rows=4"):
        model.complete(torch.zeros(1, 3, 3, dtype=torch.int64), kept_rows=4)
    with pytest.raises(ValueError, match="at least 1; got pixels=0"):
        bits_per_pixel(1.0, 0)
