"""Claims about the exact posterior of the chain and the reverse model (book sec. 13.2.2)."""

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.diffusion.gaussian import linear_gaussian_posterior
from parnassus.diffusion.oracles import MixtureOracle, gaussian_reverse_variance
from parnassus.diffusion.process import (
    diffuse,
    forward_step,
    forward_variance,
    mean_from_noise,
    posterior_mean,
    posterior_variance,
)
from parnassus.diffusion.schedules import linear_schedule


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
        found = linear_gaussian_posterior(
            y, mean=mean, precision=prior.inverse(), A=A, b=b, noise_precision=noise.inverse()
        )
        parts[f"mean_from_{rows}"] = close(found[0], mean + gain @ (y - A @ mean - b), atol=1e-9)
        parts[f"covariance_from_{rows}"] = close(found[1], prior - gain @ A @ prior, atol=1e-9)
    return all_of(**parts)


@claim("B13.2.2-2")
def the_posterior_follows_from_bayes_rule() -> Evidence:
    """μ_q and Σ_q(t) are what Bayes' rule gives for prior q(x_{t−1}|x_0) and likelihood q(x_t|x_{t−1})."""
    mean, covariance, mu_q, sigma_q = _by_bayes(of_previous_step=True)
    return all_of(mean=close(mu_q, mean, atol=1e-10), variance=close(sigma_q, covariance, atol=1e-12))


@erratum("B13.2.2-2", printed="μ = √ᾱ_t x_0 put into the rule", right="μ = √ᾱ_{t−1} x_0, the mean of x_{t−1}")
def the_prior_is_that_of_the_previous_step() -> Correction:
    """The text puts the mean of x_t where Bayes' rule needs that of x_{t−1}; its own μ_q does not come out."""
    printed, _, mu_q, _ = _by_bayes(of_previous_step=False)
    right, *_ = _by_bayes(of_previous_step=True)
    return Correction(printed=close(printed, mu_q, atol=1e-6), corrected=close(right, mu_q, atol=1e-10))


def _by_bayes(*, of_previous_step: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean and variance of q(x_{t−1}|x_t, x_0) by Bayes' rule and by the closed form, at six steps."""
    torch.manual_seed(0)
    schedule = linear_schedule(10, low=0.01, high=0.5)
    x, x0 = torch.randn(2, 6, 3, dtype=torch.float64)
    t = torch.tensor([1, 2, 4, 6, 8, 9])
    one = torch.eye(3, dtype=torch.float64)
    means, variances = [], []
    for i, step in enumerate(t.tolist()):
        alpha, before = schedule.alpha[step], schedule.alpha_bar_before[step]
        assumed = before if of_previous_step else schedule.alpha_bar[step]
        mean, covariance = linear_gaussian_posterior(
            x[i],
            mean=assumed.sqrt() * x0[i],
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
def the_posterior_is_never_wider_than_the_step() -> Evidence:
    """Σ_q(1) = 0, because ᾱ_0 = 1, and Σ_q(t) < 1 − α_t at every step."""
    schedule = linear_schedule(1_000)
    return all_of(
        first=close(posterior_variance(schedule)[0], 0.0),
        others=at_most(posterior_variance(schedule) / forward_variance(schedule), 1 - 1e-9),
    )


@claim("B13.2.2-2")
def regression_on_simulated_chains_finds_the_posterior() -> Evidence:
    """Least squares of x_{t−1} on x_t at fixed x_0 recovers both coefficients of μ_q, and Σ_q as residual variance."""
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
    """With E[ε|x_t] in place of ε_θ, μ_θ is E[x_{t−1}|x_t] of a Gaussian mixture, by quadrature over x_{t−1}."""
    schedule = linear_schedule(100, low=1e-3, high=0.2)
    oracle = MixtureOracle(
        schedule, torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.3, 0.6]).double(), torch.tensor([0.3, 0.7])
    )
    x = torch.linspace(-2, 3, 11, dtype=torch.float64)[:, None]
    previous = torch.linspace(-8, 8, 8_001, dtype=torch.float64)[:, None]
    found, truth = [], []
    for step in (1, 10, 30, 99):
        t = torch.full((len(x),), step)
        density = oracle.log_prob(previous, torch.full((len(previous),), step - 1)).exp()
        kernel = Normal(schedule.alpha[step].sqrt() * previous.T, (1 - schedule.alpha[step]).sqrt())
        weight = density * kernel.log_prob(x).exp()
        truth.append((weight @ previous) / weight.sum(1, keepdim=True))
        found.append(mean_from_noise(schedule, x, t, oracle(x, t)))
    return close(torch.cat(found), torch.cat(truth), atol=1e-6)


@claim("B13.2.2-3")
def the_two_usual_variances_enclose_the_exact_one() -> Evidence:
    """Var[x_{t−1}|x_t] is Σ_q(t) for data at a point, 1 − α_t for N(0, 1), and in between for N(0, s²), s < 1."""
    schedule = linear_schedule(1_000)
    low, high = posterior_variance(schedule), forward_variance(schedule)
    between = gaussian_reverse_variance(schedule, 0.5)
    return all_of(
        a_point=close(gaussian_reverse_variance(schedule, 0.0), low, rtol=1e-9),
        unit_normal=close(gaussian_reverse_variance(schedule, 1.0), high, rtol=1e-9),
        not_below=at_least(between - low, 0.0),
        not_above=at_least(high - between, 0.0),
    )


def _covariance(size: int) -> Tensor:
    root = torch.randn(size, size, dtype=torch.float64)
    return root @ root.mT + torch.eye(size, dtype=torch.float64)
