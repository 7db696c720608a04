"""Linear autoencoders compared with PCA, autograd and least squares."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.linear.linear_autoencoder import (
    LinearAutoencoder,
    linear_error,
    linear_gradients,
    optimal_encoder,
    reduced_rank_regression,
)
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.projection import principal_angles, pseudo_inverse, second_moment
from parnassus.probability import standard_normal


def data(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(60, 4, generator=generator, dtype=torch.float64)
    noise = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    return x, x @ torch.randn(4, 3, generator=generator, dtype=torch.float64) + noise


def test_pca_solution_is_a_stationary_point() -> None:
    x, _ = data()
    x = x - x.mean(0)
    pca = PCA.fit(x, 2)
    model = LinearAutoencoder(4, 2, bias=False).double()
    model.encoder.weight.data, model.decoder.weight.data = pca.components.mT, pca.components
    model.loss(x).backward()
    torch.testing.assert_close(model.loss(x), pca.residual_variance)
    for weight in model.parameters():
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, torch.zeros_like(weight), atol=1e-12, rtol=0)


def test_gradients_and_error_match_autograd_for_any_target() -> None:
    x, y = data()
    model = LinearAutoencoder(4, 2, bias=False).double()
    W = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    V = model.encoder.weight
    error = (y - x @ V.mT @ W.mT).square().sum(1).mean()
    moments = {"sigma_xx": second_moment(x), "sigma_yx": y.mT @ x / 60}
    torch.testing.assert_close(linear_error(V, W, sigma_yy=second_moment(y), **moments), error)
    for actual, expected in zip(linear_gradients(V, W, **moments), torch.autograd.grad(error, (V, W)), strict=True):
        torch.testing.assert_close(actual, expected)


def test_full_rank_regression_is_least_squares() -> None:
    x, y = data()
    V, W = reduced_rank_regression(3, sigma_xx=second_moment(x), sigma_yx=y.mT @ x / 60)
    torch.testing.assert_close((W @ V).mT, torch.linalg.lstsq(x, y).solution)


def test_reduced_rank_regression_on_itself_is_pca() -> None:
    x, _ = data()
    x = (x - x.mean(0)) * torch.tensor([4.0, 3.0, 1.0, 0.5])
    sigma = second_moment(x)
    V, W = reduced_rank_regression(2, sigma_xx=sigma, sigma_yx=sigma)
    assert principal_angles(W, PCA.fit(x, 2).components).max() < 1e-10
    torch.testing.assert_close(V, pseudo_inverse(W))


def test_optimal_encoder_has_minimal_error() -> None:
    x, y = data()
    W = standard_normal(3, 2, seed=1)
    moments = {"sigma_xx": second_moment(x), "sigma_yx": y.mT @ x / 60}
    V = optimal_encoder(W, **moments)
    minimum = linear_error(V, W, sigma_yy=second_moment(y), **moments)
    for seed in range(20):
        step = 0.01 * standard_normal(2, 4, seed=seed)
        assert linear_error(V + step, W, sigma_yy=second_moment(y), **moments) > minimum


def test_offset_is_the_output_for_zero() -> None:
    model = LinearAutoencoder(4, 2)
    b1, b2, W = model.encoder.bias, model.decoder.bias, model.decoder.weight
    torch.testing.assert_close(model.offset(), W @ b1 + b2)


def test_latent_dim_above_features_raises_value_error() -> None:
    with pytest.raises(ValueError, match="got latent_dim=5, features=4"):
        LinearAutoencoder(4, 5)
