"""Claims about the exact posterior of the chain and the reverse model (book sec. 13.2.2)."""

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser, gaussian_reverse_variance
from parnassus.diffusion.chain.forward_process import diffuse, forward_step, forward_variance
from parnassus.diffusion.chain.gaussian_posterior import linear_gaussian_posterior, posterior_mean, posterior_variance
from parnassus.diffusion.chain.predictions import mean_from_noise
from parnassus.diffusion.chain.schedules import linear_schedule


@claim("B13.2.2-1")
def bayes_rule_agrees_with_conditioning_the_joint_gaussian() -> Evidence:
    """The posterior of x given y = Ax + b + noise is the conditional of the joint Gaussian, A square or not."""
    parts = {}
    for rows in (2, 4, 6):
        torch.manual_seed(rows)
        A, b = torch.randn(rows, 4, dtype=torch.float64), torch.randn(rows, dtype=torch.float64)
        mean, y = torch.randn(4, dtype=torch.float64), torch.randn(rows, dtype=torch.float64)
        prior, noise = _covariance(4), _covariance(rows)
        gain = prior @ A.mT @ (A @ prior @ A.mT + noise).inverse()  # Cov(x, y) Cov(y)⁻¹
        posterior = linear_gaussian_posterior(
            y, mean=mean, precision=prior.inverse(), A=A, b=b, noise_precision=noise.inverse()
        )
        parts[f"mean_from_{rows}"] = close(posterior[0], mean + gain @ (y - A @ mean - b), atol=1e-9)
        parts[f"covariance_from_{rows}"] = close(posterior[1], prior - gain @ A @ prior, atol=1e-9)
    return all_of(**parts)


@claim("B13.2.2-2")
def the_posterior_follows_from_bayes_rule() -> Evidence:
    """μ_q and Σ_q(t) follow from Bayes' rule with prior q(x_{t−1}|x_0) and likelihood q(x_t|x_{t−1})."""
    mean, covariance, mu_q, sigma_q = _posterior_by_bayes(of_previous_step=True)
    return all_of(mean=close(mu_q, mean, atol=1e-10), variance=close(sigma_q, covariance, atol=1e-12))


@erratum("B13.2.2-2", printed="μ = √ᾱ_t x_0 in Bayes' rule", right="μ = √ᾱ_{t−1} x_0, the mean of x_{t−1}")
def the_prior_is_that_of_the_previous_step() -> Correction:
    """With the mean of x_t in place of that of x_{t−1}, Bayes' rule does not give μ_q."""
    printed, _, mu_q, _ = _posterior_by_bayes(of_previous_step=False)
    corrected, *_ = _posterior_by_bayes(of_previous_step=True)
    return Correction(printed=close(printed, mu_q, atol=1e-6), corrected=close(corrected, mu_q, atol=1e-10))


def _posterior_by_bayes(*, of_previous_step: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean and variance of q(x_{t−1}|x_t, x_0) by Bayes' rule and by the closed form, at six steps."""
    torch.manual_seed(0)
    schedule = linear_schedule(10, low=0.01, high=0.5)
    x, x0 = torch.randn(2, 6, 3, dtype=torch.float64)
    t = torch.tensor([1, 2, 4, 6, 8, 9])
    one = torch.eye(3, dtype=torch.float64)
    means, variances = [], []
    for i, step in enumerate(t.tolist()):
        alpha, before = schedule.alpha[step], schedule.alpha_bar_before[step]
        signal = before if of_previous_step else schedule.alpha_bar[step]
        mean, covariance = linear_gaussian_posterior(
            x[i],
            mean=signal.sqrt() * x0[i],
            precision=one / (1 - before),
            A=alpha.sqrt() * one,
            b=torch.zeros_like(x[i]),
            noise_precision=one / (1 - alpha),
        )
        means.append(mean)
        variances.append(covariance[0, 0])
    return (
        torch.stack(means),
        torch.stack(variances),
        posterior_mean(schedule, x, x0, t),
        posterior_variance(schedule)[t],
    )


@claim("B13.2.2-2")
def the_posterior_variance_is_below_the_forward_variance() -> Evidence:
    """Σ_q(1) = 0, since ᾱ_0 = 1, and Σ_q(t) < 1 − α_t at every step."""
    schedule = linear_schedule(1_000)
    return all_of(
        first=close(posterior_variance(schedule)[0], 0.0),
        ratio=less_equal(posterior_variance(schedule) / forward_variance(schedule), 1 - 1e-9),
    )


@claim("B13.2.2-2")
def regression_on_simulated_chains_recovers_the_posterior() -> Evidence:
    """Least-squares regression of x_{t−1} on x_t at fixed x_0 recovers the coefficients of μ_q and the variance Σ_q."""
    torch.manual_seed(0)
    schedule, step, x0 = linear_schedule(1_000), 60, 1.3
    t = torch.full((200_000,), step)
    clean = torch.full((200_000, 1), x0, dtype=torch.float64)
    previous = diffuse(schedule, clean, t - 1, torch.randn_like(clean))
    x = forward_step(schedule, previous, t, torch.randn_like(clean))

    slope = torch.cov(torch.cat([x, previous], 1).T)[0, 1] / x.var()
    line = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    predicted = posterior_mean(schedule, line, torch.full((2, 1), x0, dtype=torch.float64), t[:2])
    residual = previous - slope * x
    return all_of(
        slope=close(slope, predicted[1] - predicted[0], atol=2e-3),
        intercept=close(residual.mean(), predicted[0], atol=2e-3),
        variance=close(residual.var(), posterior_variance(schedule)[step], rtol=0.015),
    )


@claim("B13.2.2-3")
def the_mean_of_the_reverse_model_is_exact_with_the_exact_noise() -> Evidence:
    """With ε_θ = E[ε|x_t], μ_θ is E[x_{t−1}|x_t] of a Gaussian mixture, by quadrature over x_{t−1}."""
    schedule = linear_schedule(100, low=1e-3, high=0.2)
    oracle = MixtureDenoiser(
        schedule, torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.3, 0.6]).double(), torch.tensor([0.3, 0.7])
    )
    x = torch.linspace(-2, 3, 11, dtype=torch.float64)[:, None]
    previous = torch.linspace(-8, 8, 8_001, dtype=torch.float64)[:, None]
    means, truth = [], []
    for step in (1, 10, 30, 99):
        t = torch.full((len(x),), step)
        density = oracle.log_prob(previous, torch.full((len(previous),), step - 1)).exp()
        kernel = Normal(schedule.alpha[step].sqrt() * previous.T, (1 - schedule.alpha[step]).sqrt())
        weight = density * kernel.log_prob(x).exp()
        truth.append((weight @ previous) / weight.sum(1, keepdim=True))
        means.append(mean_from_noise(schedule, x, t, oracle(x, t)))
    return close(torch.cat(means), torch.cat(truth), atol=1e-6)


@claim("B13.2.2-3")
def the_two_usual_variances_bound_the_exact_one() -> Evidence:
    """Var[x_{t−1}|x_t] is Σ_q(t) for a point mass, 1 − α_t for N(0, 1), and in between for N(0, s²) with s < 1."""
    schedule = linear_schedule(1_000)
    low, high = posterior_variance(schedule), forward_variance(schedule)
    between = gaussian_reverse_variance(schedule, 0.5)
    return all_of(
        point_mass=close(gaussian_reverse_variance(schedule, 0.0), low, rtol=1e-9),
        standard_normal=close(gaussian_reverse_variance(schedule, 1.0), high, rtol=1e-9),
        above_lower=greater_equal(between - low, 0.0),
        below_upper=greater_equal(high - between, 0.0),
    )


def _covariance(size: int) -> Tensor:
    root = torch.randn(size, size, dtype=torch.float64)
    return root @ root.mT + torch.eye(size, dtype=torch.float64)
