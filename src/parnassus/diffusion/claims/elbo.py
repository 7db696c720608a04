"""Claims about the evidence lower bound and the divergence of Gaussians (book secs. 13.2.3, 13.2.4)."""

from math import e, log, pi

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.diffusion.chain.elbo import elbo_terms, gaussian_decoder, prior_kl
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser, gaussian_reverse_variance
from parnassus.diffusion.chain.forward_process import forward_log_prob, forward_variance
from parnassus.diffusion.chain.gaussian_posterior import posterior_mean, posterior_variance
from parnassus.diffusion.chain.predictions import mean_from_noise
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.claims.exact_expectations import SIGNS, second_moment_points
from parnassus.probability import diagonal_gaussian_kl, gaussian_kl

STD = 0.6**0.5


@claim("B13.2.3-1")
def the_product_of_kernels_telescopes() -> Evidence:
    """Π_{t≥2} q(x_t|x_{t−1}) = q(x_T|x_0)/q(x_1|x_0) · Π_{t≥2} q(x_{t−1}|x_t, x_0) for every chain (book eq. 13.45)."""
    torch.manual_seed(0)
    schedule = linear_schedule(8, low=0.02, high=0.5)
    chain, x0 = torch.randn(8, 5, 1, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)
    alpha_bar = schedule.alpha_bar
    marginals = Normal(alpha_bar.sqrt()[:, None, None] * x0, (1 - alpha_bar).sqrt()[:, None, None]).log_prob(chain)
    backward = torch.zeros(5, dtype=torch.float64)
    for step in range(1, 8):
        mean = posterior_mean(schedule, chain[step], x0, torch.full((5,), step))
        backward += Normal(mean, posterior_variance(schedule)[step].sqrt()).log_prob(chain[step - 1])[:, 0]
    return close(forward_log_prob(schedule, chain, x0), backward + marginals[-1, :, 0], atol=1e-10)


@claim("B13.2.3-1")
def the_exact_reverse_process_has_a_gap_at_the_prior_only() -> Evidence:
    """For Gaussian data and exact reverse mean and variance, E[log p(x_0) − ELBO] = KL(q(x_T) ‖ N(0, 1))."""
    schedule = linear_schedule(200)
    gap = _gap(schedule, gaussian_reverse_variance(schedule, STD))
    last = schedule.alpha_bar[-1] * STD**2 + 1 - schedule.alpha_bar[-1]
    return close(gap, (last - 1 - last.log()) / 2, atol=1e-10)


@claim("B13.2.3-1")
def more_steps_reduce_the_gap_of_the_posterior_variance() -> Evidence:
    """With variance Σ_q(t) the bound is not tight even for the exact mean; more steps reduce the gap."""
    gaps = []
    for steps in (50, 200, 1_000):
        schedule = linear_schedule(steps, low=0.1 / steps, high=20 / steps)
        first = gaussian_reverse_variance(schedule, STD)[:1]
        gaps.append(_gap(schedule, torch.cat([first, posterior_variance(schedule)[1:]])))
    return all_of(
        strict=greater_equal(torch.stack(gaps), 0.1),
        decreasing=less_equal(torch.stack(gaps[1:]), torch.stack(gaps[:-1]) - 0.1),
        at_1000_steps=close(gaps[-1], 0.459, atol=0.01),
    )


def _gap(schedule: Schedule, variance: Tensor) -> Tensor:
    """The exact E[log p(x_0) − ELBO] for x_0 ~ N(0, STD²); both terms are quadratic in x_0 and the noise."""
    x0, noise = STD * SIGNS[:, :1], SIGNS[:, 1:]
    oracle = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), STD)
    terms = elbo_terms(
        oracle,
        schedule,
        x0,
        variance=lambda _: variance,
        decoder=gaussian_decoder(variance[0]),
        noise=lambda _: noise,
    )
    return -0.5 * log(2 * pi * e * STD**2) - terms.elbo.mean()


@erratum("B13.2.3-1", printed="p_θ(x_0|x_1) = N(μ_θ, Σ_q(1)) with Σ_q(1) = 0", right="a separate decoder variance")
def the_decoder_needs_its_own_variance() -> Correction:
    """With Σ_q(1) = 0 the reconstruction density is a point mass, and log p(x_0|x_1) = −∞ for any error of μ_θ."""
    schedule, min_variance = linear_schedule(1_000), 1e-12
    return Correction(
        printed=greater_equal(posterior_variance(schedule)[0], min_variance),
        corrected=greater_equal(forward_variance(schedule)[0], min_variance),
    )


@claim("B13.2.4-1")
def gaussian_kl_agrees_with_independent_computations() -> Evidence:
    """The KL of Gaussians equals torch.distributions, a Monte Carlo mean, the diagonal and the scalar formulas."""
    mean_1, cov_1, mean_2, cov_2 = _two_gaussians()
    p1, p2 = MultivariateNormal(mean_1, cov_1), MultivariateNormal(mean_2, cov_2)
    x = p1.sample((200_000,))
    kl = gaussian_kl(mean_1, cov_1, mean_2, cov_2)
    variance_1, variance_2 = cov_1.diagonal(), cov_2.diagonal()
    dense = gaussian_kl(mean_1, variance_1.diag(), mean_2, variance_2.diag())
    scalar = diagonal_gaussian_kl(mean_1[:1], variance_1[:1], mean_2[:1], variance_2[:1])
    in_one_dimension = (variance_2[0] / variance_1[0]).log() / 2 - 0.5
    in_one_dimension += (variance_1[0] + (mean_1[0] - mean_2[0]) ** 2) / (2 * variance_2[0])
    return all_of(
        torch=close(kl, kl_divergence(p1, p2), rtol=1e-10),
        monte_carlo=close((p1.log_prob(x) - p2.log_prob(x)).mean(), kl, rtol=0.02),
        diagonal=close(diagonal_gaussian_kl(mean_1, variance_1, mean_2, variance_2), dense, rtol=1e-10),
        one_dimension=close(scalar, in_one_dimension, rtol=1e-10),
        to_itself=close(gaussian_kl(mean_1, cov_1, mean_1, cov_1), 0.0, atol=1e-12),
    )


@claim("B13.2.4-1")
def expectations_of_quadratic_forms_are_traces() -> Evidence:
    """E xᵀΣ₁⁻¹x = D for x ~ N(0, Σ₁), and E zᵀMz = tr M for z ~ N(0, I), for any square M."""
    _, cov_1, _, _ = _two_gaussians()
    M = torch.randn(4, 4, dtype=torch.float64)
    x, z = second_moment_points(cov_1), second_moment_points(torch.eye(4, dtype=torch.float64))
    mean, identity = torch.zeros(1, 4).double(), torch.eye(4).double()[None]
    terms = gaussian_kl(mean, cov_1[None], mean, identity) * 2 + cov_1.logdet() + 4  # tr Σ₁, by the lemma
    return all_of(
        trace_in_the_divergence=close(terms, _quadratic(x, identity[0]).mean(), rtol=1e-10),
        dimension=close(_quadratic(x, cov_1.inverse()).mean(), 4.0, rtol=1e-10),
        trace=close(_quadratic(z, M).mean(), M.trace(), rtol=1e-10),
    )


@erratum("B13.2.4-1", printed="… + tr(Σ₂⁻¹ Σ₁)", right="… + ½ tr(Σ₂⁻¹ Σ₁)")
def the_trace_in_the_proof_needs_a_factor_one_half() -> Correction:
    """The third term of the proof lacks the factor ½ in its last two lines (book eqs. 13.62-13.63)."""
    mean_1, cov_1, mean_2, cov_2 = _two_gaussians()
    truth = _quadratic(second_moment_points(cov_1) + mean_1 - mean_2, cov_2.inverse()).mean() / 2
    shift = _quadratic((mean_2 - mean_1)[None], cov_2.inverse())[0] / 2
    trace = (cov_2.inverse() @ cov_1).trace()
    divergence = gaussian_kl(mean_1[None], cov_1[None], mean_2[None], cov_2[None])[0]
    rest = (cov_2.logdet() - cov_1.logdet() - 4) / 2
    return Correction(
        printed=close(shift + trace, truth, rtol=0.01),
        corrected=all_of(
            terms=close(shift + trace / 2, truth, rtol=1e-10),
            divergence=close(shift + trace / 2 + rest, divergence, rtol=1e-10),
        ),
    )


@erratum("B13.2.4-1", printed="∫ … exp(−½ xᵀΣ₁⁻¹x) dx", right="∫ … exp(−½ xᵀΣ₁⁻¹x) dx / ((2π)^{D/2} (det Σ₁)^{1/2})")
def the_integrals_in_the_proof_need_the_normalising_constant() -> Correction:
    """The expectations are written as integrals against an unnormalised Gaussian (book eqs. 13.58-13.60)."""
    axis = torch.linspace(-12, 12, 601, dtype=torch.float64)
    x = torch.cartesian_prod(axis, axis)
    cov_1 = torch.tensor([[2.0, 0.6], [0.6, 1.0]], dtype=torch.float64)
    cov_2 = torch.tensor([[1.0, -0.3], [-0.3, 1.5]], dtype=torch.float64)
    integrand = _quadratic(x, cov_2.inverse()) * torch.exp(-_quadratic(x, cov_1.inverse()) / 2)
    integral = integrand.sum() * (axis[1] - axis[0]) ** 2
    mean = torch.zeros(1, 2, dtype=torch.float64)
    truth = 2 * gaussian_kl(mean, cov_1[None], mean, cov_2[None])[0] - cov_2.logdet() + cov_1.logdet() + 2
    return Correction(
        printed=close(integral, truth, rtol=0.01),
        corrected=close(integral / (2 * pi * cov_1.det().sqrt()), truth, rtol=1e-6),
    )


@claim("B13.2.4-2")
def kl_at_equal_variances_is_the_scaled_distance_of_means() -> Evidence:
    """KL(q(x_{t−1}|x_t, x_0) ‖ p_θ) = ½ ‖μ_θ − μ_q‖² / Σ_q(t) if both have variance Σ_q(t)."""
    torch.manual_seed(0)
    schedule = linear_schedule(1_000)
    x0, x, noise = torch.randn(3, 1, 4, dtype=torch.float64)
    t = torch.tensor([300])
    mu_q, mu = posterior_mean(schedule, x, x0, t), mean_from_noise(schedule, x, t, noise)
    variance = posterior_variance(schedule)[300]
    covariance = (variance * torch.eye(4, dtype=torch.float64))[None]
    return close(gaussian_kl(mu_q, covariance, mu, covariance), (mu - mu_q).square().sum() / (2 * variance), rtol=1e-9)


@erratum("B13.2.4-2", printed="E log p(x_T)/q(x_T|x_0) is KL(q(x_T|x_0) ‖ p(x_T))", right="it is minus that KL")
def the_prior_term_is_a_negative_kl() -> Correction:
    """The prior term decreases the bound; the sentence below the ELBO omits its sign."""
    torch.manual_seed(0)
    schedule = linear_schedule(100)
    x0 = torch.tensor([[1.5]], dtype=torch.float64)
    q = Normal(schedule.alpha_bar[-1].sqrt() * x0, (1 - schedule.alpha_bar[-1]).sqrt())
    x = q.sample((100_000,))
    term = (Normal(0.0, 1.0).log_prob(x) - q.log_prob(x)).mean()
    kl = prior_kl(schedule, x0)
    return Correction(printed=close(term, kl, rtol=0.03), corrected=close(term, -kl, rtol=0.03))


@erratum(
    "B13.2.4-2",
    printed="KL(q(x_t, x_{t−1}|x_0) ‖ p_θ(x_{t−1}|x_t))",
    right="E_{q(x_t|x_0)} KL(q(x_{t−1}|x_t, x_0) ‖ p_θ(x_{t−1}|x_t))",
)
def the_matching_term_compares_densities_of_the_same_variable() -> Correction:
    """The printed KL compares a joint density with a conditional one; it is off by the entropy of q(x_t|x_0)."""
    schedule, step = linear_schedule(20, low=0.01, high=0.5), 8
    t, x0 = torch.full((4,), step), torch.full((4, 1), 0.7, dtype=torch.float64)
    alpha_bar, variance = schedule.alpha_bar[step], posterior_variance(schedule)[step]
    marginal = Normal(alpha_bar.sqrt() * x0, (1 - alpha_bar).sqrt())
    x = marginal.mean + marginal.stddev * SIGNS[:, :1]
    mu_q = posterior_mean(schedule, x, x0, t)
    previous = mu_q + variance.sqrt() * SIGNS[:, 1:]
    backward, model = Normal(mu_q, variance.sqrt()), Normal(0.9 * x, variance.sqrt())  # an arbitrary μ_θ

    term = (model.log_prob(previous) - backward.log_prob(previous)).mean()  # of the ELBO
    joint = (marginal.log_prob(x) + backward.log_prob(previous) - model.log_prob(previous)).mean()
    inner = ((0.9 * x - mu_q).square() / (2 * variance)).mean()
    return Correction(printed=close(term, -joint, atol=1e-3), corrected=close(term, -inner, atol=1e-10))


def _two_gaussians() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    root_1, root_2 = torch.randn(2, 4, 4, dtype=torch.float64)
    one = torch.eye(4, dtype=torch.float64)
    mean_1, mean_2 = torch.randn(2, 4, dtype=torch.float64)
    return mean_1, root_1 @ root_1.mT + one, mean_2, root_2 @ root_2.mT + one


def _quadratic(x: Tensor, M: Tensor) -> Tensor:
    """xᵀ M x for each row."""
    return ((x @ M) * x).sum(-1)
