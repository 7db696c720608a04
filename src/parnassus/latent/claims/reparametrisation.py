"""Claims about drawing a code so that gradients pass: z = μ + σ ε (book sec. 6.3, Diehl sec. 6)."""

import torch
from scipy.stats import kstest
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.atlas import Correction, Evidence, accepts, all_of, at_least, claim, close, erratum, rejects
from parnassus.latent.full_covariance import correlated_reparametrise, normal_from_numbers, numbers_of_normal
from parnassus.latent.gradients import bonnet_price
from parnassus.latent.vae import reparametrise

DOUBLE = torch.float64


def many(mean: float, variance: float, count: int) -> Tensor:
    """Draws of the trick for one mean and one variance."""
    ones = torch.ones(count, 1, dtype=DOUBLE)
    return reparametrise(mean * ones, torch.tensor(variance, dtype=DOUBLE).log() * ones)[:, 0]


@claim("B6.3-1", "D6.0.16")
def the_trick_draws_from_the_normal() -> Evidence:
    """The draws z = μ + σ ε with ε ~ N(0, 1) have mean μ and deviation σ, and pass for normal (book sec. 6.3)."""
    torch.manual_seed(0)
    z = many(1.5, 0.25, 100_000)
    return all_of(
        mean=close(z.mean(), 1.5, atol=0.006),
        deviation=close(z.std(), 0.5, atol=0.005),
        kolmogorov_smirnov=accepts(kstest(z.numpy(), "norm", args=(1.5, 0.5)).pvalue),
        another_mean_would_be_seen=rejects(kstest(z.numpy(), "norm", args=(1.52, 0.5)).pvalue),
    )


@claim("B6.3-1", "B5.2-1")
def gradients_pass_the_draw() -> Evidence:
    """∂E z²/∂μ = 2μ and ∂E z²/∂σ = 2σ through the trick; through a plain draw nothing passes (book sec. 6.3)."""
    torch.manual_seed(0)
    mean = torch.tensor([0.8], dtype=DOUBLE, requires_grad=True)
    std = torch.tensor([0.6], dtype=DOUBLE, requires_grad=True)
    z = reparametrise(mean.expand(200_000, 1), 2 * std.log().expand(200_000, 1))
    slopes = torch.cat(torch.autograd.grad(z.square().mean(), (mean, std)))
    blocked = MultivariateNormal(mean, scale_tril=std[None]).sample((10,))
    return all_of(
        through_the_trick=close(slopes, torch.tensor([1.6, 1.2], dtype=DOUBLE), atol=0.015),
        plain_draw_has_a_gradient=close(float(blocked.requires_grad), 0.0),
    )


@erratum("B6.3-1", printed="ε ~ N(0, σ²), x = σ² ε + μ", right="ε ~ N(0, 1), z = σ ε + μ")
def noise_is_scaled_by_the_deviation() -> Correction:
    """As printed σ = 0.5 comes out as 0.125, and as 0.25 if the noise is standard (book sec. 6.3)."""
    torch.manual_seed(0)
    sigma = 0.5
    epsilon = torch.randn(100_000, dtype=DOUBLE)
    as_printed = sigma**2 * (sigma * epsilon) + 1.0
    by_variance = sigma**2 * epsilon + 1.0
    return Correction(
        printed=close(torch.stack([as_printed.std(), by_variance.std()]), sigma, rtol=0.1),
        corrected=all_of(
            deviation=close(many(1.0, sigma**2, 100_000).std(), sigma, rtol=0.01),
            printed_deviation=close(as_printed.std(), 0.125, rtol=0.01),
        ),
    )


@claim("B6.3-2", "D6.0.16")
def a_factor_of_the_covariance_shapes_the_noise() -> Evidence:
    """The draws z = μ + Lε have covariance LLᵀ, whether L is triangular or the symmetric root (book sec. 6.3)."""
    torch.manual_seed(0)
    root = torch.randn(3, 3, dtype=DOUBLE)
    covariance = root @ root.mT + 0.2 * torch.eye(3, dtype=DOUBLE)
    mean = torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE).expand(200_000, 3)
    values, vectors = torch.linalg.eigh(covariance)
    factors = {"cholesky": torch.linalg.cholesky(covariance), "root": vectors @ values.sqrt().diag() @ vectors.mT}
    z = {name: correlated_reparametrise(mean, L.expand(200_000, 3, 3)) for name, L in factors.items()}
    return all_of(
        cholesky=close(z["cholesky"].T.cov(), covariance, atol=0.06),
        symmetric_root=close(z["root"].T.cov(), covariance, atol=0.06),
        mean=close(z["cholesky"].mean(0), mean[0], atol=0.02),
    )


@claim("B6.3-2", "D6.0.8", "D6.0.21")
def any_numbers_make_a_covariance() -> Evidence:
    """A factor with exp on its diagonal gives a positive definite Σ for all numbers, each Σ once (Diehl ex. 6.4)."""
    torch.manual_seed(0)
    numbers = 2 * torch.randn(500, numbers_of_normal(4), dtype=DOUBLE)
    normal = normal_from_numbers(numbers, 4)
    covariance = normal.covariance_matrix
    factor = torch.linalg.cholesky(covariance)
    row, column = torch.tril_indices(4, 4)
    lower = factor[:, row, column]
    read_back = torch.where(row == column, lower.log(), lower)
    return all_of(
        least_eigenvalue=at_least(torch.linalg.eigvalsh(covariance).min(), 0.0),
        numbers=close(numbers.shape[1], 4 + 10),
        read_back=close(torch.cat([normal.mean, read_back], 1), numbers, rtol=1e-5, atol=1e-5),
    )


@claim("D6.0.18")
def the_covariance_moves_a_mean_by_half_the_curvature() -> Evidence:
    """∇_μ E f = E ∇f and ∇_Σ E f = ½ E ∇²f, against the closed form for f = exp(a·z) (Diehl sec. 6)."""
    torch.manual_seed(0)
    a = torch.tensor([0.4, -0.3], dtype=DOUBLE)
    mean = torch.tensor([0.5, 1.0], dtype=DOUBLE)
    covariance = torch.tensor([[0.8, 0.3], [0.3, 0.5]], dtype=DOUBLE)
    z = MultivariateNormal(mean, covariance).sample((200_000,))
    slope, half_curvature = bonnet_price(lambda point: (a @ point).exp(), z)
    value = (a @ mean + a @ covariance @ a / 2).exp()  # E exp(a·z)
    return all_of(
        in_the_mean=close(slope.mean(0), value * a, rtol=0.01),
        in_the_covariance=close(half_curvature.mean(0), value * torch.outer(a, a) / 2, rtol=0.01),
        without_the_half=at_least((2 * half_curvature.mean(0) / (value * torch.outer(a, a) / 2)).min(), 1.9),
    )
