"""InfoVAE objectives."""

from functools import partial

import pytest
import torch

from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.elbo import NegativeELBO, Objective
from parnassus.latent.variational.info_vae import InfoVAE
from parnassus.latent.variational.reparametrisation import reparametrise
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp
from parnassus.probability import rbf_kernel, squared_mmd


def small_vae() -> VAE:
    torch.manual_seed(0)
    return VAE(mlp((6, 8, 4)), BernoulliDecoder(mlp((2, 8, 6))), 2)


@torch.no_grad()
def evaluate(objective: Objective) -> torch.Tensor:
    model = small_vae()
    torch.manual_seed(1)
    x = torch.rand(9, 6).round()
    torch.manual_seed(2)
    return objective(model, x)


@pytest.mark.parametrize(("alpha", "lam", "beta"), [(0.0, 1.0, 1.0), (-2.0, 3.0, 3.0), (0.75, 0.25, 0.25)])
def test_info_vae_without_discrepancy_is_a_weighted_elbo(alpha: float, lam: float, beta: float) -> None:
    torch.testing.assert_close(evaluate(InfoVAE(alpha, lam)), evaluate(NegativeELBO(beta)))


@torch.no_grad()
def test_mmd_vae_is_distortion_plus_discrepancy() -> None:
    model, kernel = small_vae(), partial(rbf_kernel, length_scale=0.5)
    torch.manual_seed(1)
    x = torch.rand(9, 6).round()
    torch.manual_seed(2)
    z = reparametrise(*model.posterior_parameters(x))
    expected = -model.log_likelihood(x, z) + 7 * squared_mmd(z, torch.randn_like(z), kernel=kernel)
    torch.testing.assert_close(evaluate(InfoVAE(1.0, 7.0, kernel=kernel)), expected)


def test_every_parameter_has_a_gradient() -> None:
    model = small_vae()
    model.objective = InfoVAE(1.0, 100.0)
    model.loss(torch.rand(9, 6)).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in model.parameters())


def test_invalid_weights_raise() -> None:
    with pytest.raises(ValueError, match=r"1 − alpha, the weight of the rate, must not be negative; got alpha=1\.5"):
        InfoVAE(1.5)
    with pytest.raises(ValueError, match=r"must not be negative; got alpha=0\.2, lam=0\.5"):
        InfoVAE(0.2, 0.5)
