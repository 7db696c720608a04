"""The exact ELBO of the linear VAE compared with samples, KL divergences and log p(x)."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence

from parnassus.latent.linear.linear_vae import LinearVAE, fit_by_lbfgs
from parnassus.latent.linear.probabilistic_pca import PPCA


def random_data(rows: int = 120) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    return torch.randn(rows, 4, generator=generator, dtype=torch.float64) @ mixing + 1


@pytest.fixture
def model() -> LinearVAE:
    torch.manual_seed(1)
    vae = LinearVAE(4, 2).double()
    with torch.no_grad():
        vae.log_variance.fill_(-0.3)
        vae.log_s.copy_(torch.tensor([-1.0, 0.2]))
    return vae


@torch.no_grad()
def test_elbo_matches_monte_carlo_estimate(model: LinearVAE) -> None:
    x = random_data(3)
    q = Independent(model.encode(x), 1)
    z = q.sample(torch.Size([200_000]))
    p = Normal(z @ model.W.mT + model.mean, (model.log_variance / 2).exp())
    prior = Independent(Normal(torch.zeros_like(q.mean), torch.ones_like(q.mean)), 1)
    log_likelihood = p.log_prob(x).sum(-1)
    estimate, error = log_likelihood.mean(0) - kl_divergence(q, prior), log_likelihood.std(0) / 200_000**0.5
    assert bool(((model.elbo(x) - estimate).abs() < 4 * error).all())


@torch.no_grad()
def test_elbo_is_below_the_log_density(model: LinearVAE) -> None:
    x = random_data()
    assert bool((model.elbo(x) <= model.to_ppca().log_prob(x)).all())
    torch.testing.assert_close(model.loss(x), -model.elbo(x).mean())


@torch.no_grad()
def test_elbo_gap_is_the_kl_divergence_to_the_posterior(model: LinearVAE) -> None:
    """The gap ln p(x) − ELBO is KL(q ‖ p(z|x))."""
    x, target = (
        random_data(),
        PPCA.fit(random_data(), 2).rotate(torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64)),
    )
    model.match_ppca(target)
    q = model.encode(x)
    full = torch.distributions.MultivariateNormal(q.mean, torch.diag_embed(q.variance))
    gap = kl_divergence(full, target.posterior(x))
    torch.testing.assert_close(target.log_prob(x) - model.elbo(x), gap)
    before = model.elbo(x).mean()
    model.log_s.add_(0.01)
    assert model.elbo(x).mean() < before


def test_training_converges_to_the_closed_form(model: LinearVAE) -> None:
    x = random_data()
    losses = fit_by_lbfgs(model, x, num_rounds=4)
    closed_form = PPCA.fit(x, 2)
    assert -losses[-1] == pytest.approx(float(closed_form.log_prob(x).mean()), abs=1e-8)
    torch.testing.assert_close(model.to_ppca().covariance, closed_form.covariance, atol=1e-4, rtol=1e-4)
    order = model.W.detach().norm(dim=0).argsort(descending=True)
    torch.testing.assert_close(model.W.detach()[:, order].abs(), closed_form.W.abs(), atol=1e-3, rtol=1e-3)


def test_invalid_sizes_raise(model: LinearVAE) -> None:
    with pytest.raises(ValueError, match="need 1 ≤ latent_dim < features; got latent_dim=4, features=4"):
        LinearVAE(4, 4)
    with pytest.raises(ValueError, match="num_rounds must be at least 1; got num_rounds=0"):
        fit_by_lbfgs(model, random_data(), num_rounds=0)
