"""Denoising autoencoders and denoisers in closed form."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from parnassus.latent.autoencoders.autoencoder import Autoencoder, shallow_autoencoder
from parnassus.latent.autoencoders.denoising_autoencoder import (
    DenoisingAutoencoder,
    add_gaussian_noise,
    add_salt_and_pepper_noise,
    exact_denoiser,
    linear_denoiser_matrix,
    mask_at_random,
    psnr,
    score_from_denoiser,
    smoothed_log_density,
)

KERNELS: dict[str, Callable[..., Tensor]] = {
    "gaussian": partial(add_gaussian_noise, std=0.4),
    "masking": partial(mask_at_random, probability=0.3),
    "salt and pepper": partial(add_salt_and_pepper_noise, probability=0.3),
}


@pytest.mark.parametrize("name", KERNELS)
def test_loss_of_the_identity_is_the_noise_variance(name: str) -> None:
    x = torch.full((200, 100), 0.5)
    model = DenoisingAutoencoder(Autoencoder(nn.Identity(), nn.Identity()), KERNELS[name])
    torch.manual_seed(0)
    expected = (KERNELS[name](x) - x).square().mean()
    torch.manual_seed(0)
    torch.testing.assert_close(model.loss(x), expected)
    variance = {"gaussian": 0.16, "masking": 0.3 * 0.25, "salt and pepper": 0.3 * 0.25}[name]
    torch.testing.assert_close(expected, torch.tensor(variance), rtol=0.05, atol=0)


@pytest.mark.parametrize("name", KERNELS)
def test_corruption_is_reproducible_with_a_generator(name: str) -> None:
    x = torch.rand(5, 7)
    first, second = (KERNELS[name](x, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    torch.testing.assert_close(first, second)
    assert not torch.equal(first, x)


def test_zero_noise_leaves_inputs_unchanged() -> None:
    x = torch.rand(5, 7)
    torch.testing.assert_close(add_gaussian_noise(x, std=0.0), x)
    torch.testing.assert_close(mask_at_random(x, probability=0.0), x)
    torch.testing.assert_close(add_salt_and_pepper_noise(x, probability=0.0), x)
    assert mask_at_random(x, probability=1.0).abs().max() == 0
    assert set(add_salt_and_pepper_noise(x, probability=1.0).unique().tolist()) <= {0.0, 1.0}


def test_encode_and_decode_delegate_to_the_autoencoder() -> None:
    autoencoder, x = shallow_autoencoder(6, 2), torch.rand(3, 6)
    model = DenoisingAutoencoder(autoencoder, KERNELS["gaussian"])
    torch.testing.assert_close(model.decode(model.encode(x)), autoencoder(x))
    torch.testing.assert_close(model(x), autoencoder(x))


def test_exact_denoiser_of_two_points_is_tanh() -> None:
    """E[x | x̂] = tanh(x̂ / s²) for x = ±1 with equal probability."""
    points, x_hat = torch.tensor([[-1.0], [1.0]]), torch.linspace(-3, 3, 25)[:, None]
    torch.testing.assert_close(exact_denoiser(points, x_hat, std=0.7), torch.tanh(x_hat / 0.49))


def test_gaussian_denoiser_of_a_diagonal_covariance() -> None:
    sigma = torch.diag(torch.tensor([4.0, 1.0]))
    torch.testing.assert_close(linear_denoiser_matrix(sigma, std=1.0), torch.diag(torch.tensor([0.8, 0.5])))


def test_gaussian_denoiser_matches_closed_form() -> None:
    """The cross moment of (x, x̂) times the inverse second moment of x̂, for a non-diagonal Σ."""
    sigma = torch.tensor([[2.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    noisy = sigma + 0.25 * torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(linear_denoiser_matrix(sigma, std=0.5), sigma @ torch.linalg.inv(noisy))


def test_smoothed_density_of_one_point_is_normal() -> None:
    x_hat = torch.randn(5, 3, dtype=torch.float64)
    point = torch.ones(1, 3, dtype=torch.float64)
    normal = torch.distributions.Normal(1.0, 0.6)
    torch.testing.assert_close(smoothed_log_density(point, x_hat, std=0.6), normal.log_prob(x_hat).sum(1))
    torch.testing.assert_close(score_from_denoiser(point.expand(5, 3), x_hat, std=0.6), (1 - x_hat) / 0.36)


def test_psnr_matches_closed_form() -> None:
    torch.testing.assert_close(psnr(torch.full((4,), 0.6), torch.full((4,), 0.5)), torch.tensor(20.0))


def test_invalid_values_raise() -> None:
    x = torch.rand(2, 2)
    with pytest.raises(ValueError, match="std must not be negative; got std=-1"):
        add_gaussian_noise(x, std=-1.0)
    with pytest.raises(ValueError, match=r"probability must lie between 0 and 1; got probability=1.5"):
        mask_at_random(x, probability=1.5)
    with pytest.raises(ValueError, match="std must be positive; got std=0"):
        exact_denoiser(x, x, std=0.0)
