"""The exact bound of the linear VAE against samples, torch's divergences and the density it bounds."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence

from parnassus.latent.linear.linear_vae import LinearVAE, fit_by_lbfgs
from parnassus.latent.linear.probabilistic_pca import PPCA


def cloud(rows: int = 120) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    return torch.randn(rows, 4, generator=generator, dtype=torch.float64) @ mix + 1


@pytest.fixture
def model() -> LinearVAE:
    torch.manual_seed(1)
    vae = LinearVAE(4, 2).double()
    with torch.no_grad():
        vae.log_variance.fill_(-0.3)
        vae.log_s.copy_(torch.tensor([-1.0, 0.2]))
    return vae


@torch.no_grad()
def test_the_bound_is_the_mean_over_draws(model: LinearVAE) -> None:
    x = cloud(3)
    q = Independent(model.encode(x), 1)
    z = q.sample(torch.Size([200_000]))
    p = Normal(z @ model.W.mT + model.mean, (model.log_variance / 2).exp())
    prior = Independent(Normal(torch.zeros_like(q.mean), torch.ones_like(q.mean)), 1)
    drawn = p.log_prob(x).sum(-1)
    estimate, error = drawn.mean(0) - kl_divergence(q, prior), drawn.std(0) / 200_000**0.5
    assert bool(((model.elbo(x) - estimate).abs() < 4 * error).all())


@torch.no_grad()
def test_the_bound_is_below_the_density(model: LinearVAE) -> None:
    x = cloud()
    assert bool((model.elbo(x) <= model.to_ppca().log_prob(x)).all())
    torch.testing.assert_close(model.loss(x), -model.elbo(x).mean())


@torch.no_grad()
def test_the_gap_of_the_bound_is_the_kl_divergence_to_the_posterior(model: LinearVAE) -> None:
    """The gap ln p(x) − ELBO is KL(q ‖ p(z|x)), by torch's divergence between the two normals."""
    x, target = cloud(), PPCA.fit(cloud(), 2).rotate(torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64))
    model.match_ppca(target)
    q = model.encode(x)
    full = torch.distributions.MultivariateNormal(q.mean, torch.diag_embed(q.variance))
    gap = kl_divergence(full, target.posterior(x))
    torch.testing.assert_close(target.log_prob(x) - model.elbo(x), gap)
    before = model.elbo(x).mean()
    model.log_s.add_(0.01)
    assert model.elbo(x).mean() < before


def test_training_converges_to_the_closed_form(model: LinearVAE) -> None:
    x = cloud()
    losses = fit_by_lbfgs(model, x, num_rounds=4)
    best = PPCA.fit(x, 2)
    assert -losses[-1] == pytest.approx(float(best.log_prob(x).mean()), abs=1e-8)
    torch.testing.assert_close(model.to_ppca().covariance, best.covariance, atol=1e-4, rtol=1e-4)
    order = model.W.detach().norm(dim=0).argsort(descending=True)
    torch.testing.assert_close(model.W.detach()[:, order].abs(), best.W.abs(), atol=1e-3, rtol=1e-3)


def test_invalid_sizes_raise(model: LinearVAE) -> None:
    with pytest.raises(ValueError, match="need 1 ≤ latent_dim < features; got latent_dim=4, features=4"):
        LinearVAE(4, 4)
    with pytest.raises(ValueError, match="num_rounds must be at least 1; got num_rounds=0"):
        fit_by_lbfgs(model, cloud(), num_rounds=0)
