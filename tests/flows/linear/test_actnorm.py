"""Activation normalisation, initialised from the first batch."""

import pytest
import torch
from torch import Tensor
from torch.func import jacrev

from parnassus.flows import ActNorm, Chain


def sample_images(count: int = 64) -> Tensor:
    torch.manual_seed(0)
    std, mean = torch.tensor([0.1, 3.0, 20.0]), torch.tensor([5.0, -1.0, 100.0])
    return mean[:, None, None] + std[:, None, None] * torch.randn(count, 3, 4, 4)


def test_first_batch_is_standardised() -> None:
    norm = ActNorm(3)
    z, log_det = norm.inverse(sample_images())
    channels = z.movedim(1, 0).flatten(1)
    torch.testing.assert_close(channels.mean(1), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(channels.std(1, correction=0), torch.ones(3), atol=1e-4, rtol=0)
    std = sample_images().movedim(1, 0).flatten(1).std(1, correction=0)
    torch.testing.assert_close(log_det, -16 * std.log().sum().expand(64), rtol=1e-5, atol=0)


def test_second_batch_does_not_change_the_parameters() -> None:
    norm = ActNorm(3)
    norm.inverse(sample_images())
    before = norm.log_scale.clone()
    norm.inverse(5 * sample_images() + 3)
    torch.testing.assert_close(norm.log_scale, before, rtol=0, atol=0)


def test_evaluation_and_sampling_do_not_initialise_parameters() -> None:
    norm = ActNorm(3)
    norm(sample_images())
    norm.eval()
    norm.inverse(sample_images())
    assert not norm.initialised
    assert not norm.log_scale.any()


def test_loaded_model_is_not_reinitialised() -> None:
    first = ActNorm(3)
    first.inverse(sample_images())
    second = ActNorm(3)
    second.load_state_dict(first.state_dict())
    second.inverse(7 * sample_images())
    torch.testing.assert_close(second.shift, first.shift, rtol=0, atol=0)
    torch.testing.assert_close(second.log_scale, first.log_scale, rtol=0, atol=0)


def test_log_determinant_matches_autograd() -> None:
    norm = ActNorm(3).double()
    norm.inverse(sample_images().double())
    z = torch.randn(3, 2, 2, dtype=torch.float64)
    jacobian = jacrev(lambda image: norm(image[None])[0][0].flatten())(z).reshape(12, 12)
    x, log_det = norm(z[None])
    torch.testing.assert_close(log_det[0], torch.linalg.slogdet(jacobian).logabsdet)
    torch.testing.assert_close(norm.inverse(x)[0][0], z, atol=1e-10, rtol=0)


def test_layers_of_a_chain_are_initialised_from_their_inputs() -> None:
    chain = Chain([ActNorm(3), ActNorm(3)])
    chain.inverse(sample_images())
    first, second = chain
    assert isinstance(first, ActNorm)
    assert isinstance(second, ActNorm)
    torch.testing.assert_close(first.log_scale, torch.zeros(3), atol=1e-4, rtol=0)  # its input is standardised
    assert (second.log_scale.abs() > 1).any()


def test_constant_channel_keeps_its_scale() -> None:
    norm = ActNorm(2)
    x = torch.stack([torch.randn(50), torch.full((50,), 0.1)], 1)
    z, log_det = norm.inverse(x)
    assert float(norm.log_scale[1].detach()) == 0
    torch.testing.assert_close(z[:, 1], torch.zeros(50), atol=1e-6, rtol=0)
    assert torch.isfinite(log_det).all()


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least one feature; got features=0"):
        ActNorm(0)
