"""Claims about the reparametrisation trick z = μ + σ ε (book sec. 6.3, Diehl sec. 6)."""

import torch
from scipy.stats import kstest
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.atlas import Correction, Evidence, accepts, all_of, claim, close, erratum, greater_equal, rejects
from parnassus.latent.variational.full_covariance_vae import (
    gaussian_from_parameters,
    num_gaussian_parameters,
    reparametrise_full_covariance,
)
from parnassus.latent.variational.gradient_estimators import bonnet_price_derivatives
from parnassus.latent.variational.reparametrisation import reparametrise

DOUBLE = torch.float64


def reparametrised_samples(mean: float, variance: float, count: int) -> Tensor:
    """Reparametrised samples for one mean and one variance."""
    ones = torch.ones(count, 1, dtype=DOUBLE)
    return reparametrise(mean * ones, torch.tensor(variance, dtype=DOUBLE).log() * ones)[:, 0]


@claim("B6.3-1", "D6.0.16")
def reparametrised_samples_are_normal() -> Evidence:
    """Samples z = μ + σ ε with ε ~ N(0, 1) have mean μ and standard deviation σ and are normal (book sec. 6.3)."""
    torch.manual_seed(0)
    z = reparametrised_samples(1.5, 0.25, 100_000)
    return all_of(
        mean=close(z.mean(), 1.5, atol=0.006),
        deviation=close(z.std(), 0.5, atol=0.005),
        kolmogorov_smirnov=accepts(kstest(z.numpy(), "norm", args=(1.5, 0.5)).pvalue),
        another_mean_is_rejected=rejects(kstest(z.numpy(), "norm", args=(1.52, 0.5)).pvalue),
    )


@claim("B6.3-1", "B5.2-1")
def reparametrised_samples_pass_gradients() -> Evidence:
    """∂E z²/∂μ = 2μ and ∂E z²/∂σ = 2σ by reparametrisation; plain samples have no gradient (book sec. 6.3)."""
    torch.manual_seed(0)
    mean = torch.tensor([0.8], dtype=DOUBLE, requires_grad=True)
    std = torch.tensor([0.6], dtype=DOUBLE, requires_grad=True)
    z = reparametrise(mean.expand(200_000, 1), 2 * std.log().expand(200_000, 1))
    gradients = torch.cat(torch.autograd.grad(z.square().mean(), (mean, std)))
    plain_sample = MultivariateNormal(mean, scale_tril=std[None]).sample((10,))
    return all_of(
        reparametrised_gradients=close(gradients, torch.tensor([1.6, 1.2], dtype=DOUBLE), atol=0.015),
        plain_sample_requires_grad=close(float(plain_sample.requires_grad), 0.0),
    )


@erratum("B6.3-1", printed="ε ~ N(0, σ²), x = σ² ε + μ", right="ε ~ N(0, 1), z = σ ε + μ")
def noise_is_scaled_by_the_deviation() -> Correction:
    """As printed σ = 0.5 gives a standard deviation of 0.125, or 0.25 with standard noise (book sec. 6.3)."""
    torch.manual_seed(0)
    sigma = 0.5
    epsilon = torch.randn(100_000, dtype=DOUBLE)
    as_printed = sigma**2 * (sigma * epsilon) + 1.0
    by_variance = sigma**2 * epsilon + 1.0
    return Correction(
        printed=close(torch.stack([as_printed.std(), by_variance.std()]), sigma, rtol=0.1),
        corrected=all_of(
            deviation=close(reparametrised_samples(1.0, sigma**2, 100_000).std(), sigma, rtol=0.01),
            printed_deviation=close(as_printed.std(), 0.125, rtol=0.01),
        ),
    )


@claim("B6.3-2", "D6.0.16")
def a_factor_of_the_covariance_transforms_the_noise() -> Evidence:
    """Samples z = μ + Lε have covariance LLᵀ for the Cholesky factor and the symmetric root L (book sec. 6.3)."""
    torch.manual_seed(0)
    root = torch.randn(3, 3, dtype=DOUBLE)
    covariance = root @ root.mT + 0.2 * torch.eye(3, dtype=DOUBLE)
    mean = torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE).expand(200_000, 3)
    values, vectors = torch.linalg.eigh(covariance)
    factors = {"cholesky": torch.linalg.cholesky(covariance), "root": vectors @ values.sqrt().diag() @ vectors.mT}
    z = {name: reparametrise_full_covariance(mean, L.expand(200_000, 3, 3)) for name, L in factors.items()}
    return all_of(
        cholesky=close(z["cholesky"].T.cov(), covariance, atol=0.06),
        symmetric_root=close(z["root"].T.cov(), covariance, atol=0.06),
        mean=close(z["cholesky"].mean(0), mean[0], atol=0.02),
    )


@claim("B6.3-2", "D6.0.8", "D6.0.21")
def every_parameter_vector_gives_one_covariance() -> Evidence:
    """A Cholesky factor with exp on its diagonal is a bijection onto positive definite covariances (Diehl ex. 6.4)."""
    torch.manual_seed(0)
    parameters = 2 * torch.randn(500, num_gaussian_parameters(4), dtype=DOUBLE)
    normal = gaussian_from_parameters(parameters, 4)
    covariance = normal.covariance_matrix
    factor = torch.linalg.cholesky(covariance)
    row, column = torch.tril_indices(4, 4)
    lower = factor[:, row, column]
    recovered = torch.where(row == column, lower.log(), lower)
    return all_of(
        smallest_eigenvalue=greater_equal(torch.linalg.eigvalsh(covariance).min(), 0.0),
        number_of_parameters=close(parameters.shape[1], 4 + 10),
        recovered_parameters=close(torch.cat([normal.mean, recovered], 1), parameters, rtol=1e-5, atol=1e-5),
    )


@claim("D6.0.18")
def bonnet_and_price_give_the_gradients_of_a_gaussian_mean() -> Evidence:
    """∇_μ E f = E ∇f and ∇_Σ E f = ½ E ∇²f agree with the closed form for f = exp(a·z) (Diehl sec. 6)."""
    torch.manual_seed(0)
    a = torch.tensor([0.4, -0.3], dtype=DOUBLE)
    mean = torch.tensor([0.5, 1.0], dtype=DOUBLE)
    covariance = torch.tensor([[0.8, 0.3], [0.3, 0.5]], dtype=DOUBLE)
    z = MultivariateNormal(mean, covariance).sample((200_000,))
    gradient, half_curvature = bonnet_price_derivatives(lambda point: (a @ point).exp(), z)
    value = (a @ mean + a @ covariance @ a / 2).exp()  # E exp(a·z)
    return all_of(
        mean_gradient=close(gradient.mean(0), value * a, rtol=0.01),
        covariance_gradient=close(half_curvature.mean(0), value * torch.outer(a, a) / 2, rtol=0.01),
        ratio_without_one_half=greater_equal((2 * half_curvature.mean(0) / (value * torch.outer(a, a) / 2)).min(), 1.9),
    )
