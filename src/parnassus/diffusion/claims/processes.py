"""Claims about noising equations, stationary processes and ancestral sampling (book sec. 13.2, Diehl sec. 5.1)."""

from math import exp

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.diffusion.chain.elbo import elbo_terms, pixel_decoder
from parnassus.diffusion.chain.forward_process import diffuse, forward_variance
from parnassus.diffusion.chain.gaussian_posterior import posterior_mean, posterior_variance
from parnassus.diffusion.chain.predictions import mean_from_noise
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.continuous.fokker_planck import fokker_planck, stationary_density
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.diffusion.continuous.probability_flow import solve_probability_flow
from parnassus.diffusion.continuous.sde import sub_variance_preserving, variance_exploding, variance_preserving
from parnassus.diffusion.samplers.ddpm import ddpm_path
from parnassus.probability import standard_normal

PROCESS = OrnsteinUhlenbeck(rate=0.7, mean=0.4, sigma=1.3)


@claim("C-24")
def noising_equations_have_the_stated_moments() -> Evidence:
    """a′ = f a and (b²)′ = 2f b² + g² at all times, a(0) = 1, b(0) = 0: for VP, sub-VP and VE (Diehl sec. 5.1)."""
    parts, t = {}, torch.linspace(0.02, 1, 50, dtype=torch.float64).requires_grad_()
    zero = torch.zeros(1, dtype=torch.float64)
    for name, sde in (
        ("vp", variance_preserving(0.2, 15.0)),
        ("sub_vp", sub_variance_preserving(0.2, 15.0)),
        ("ve", variance_exploding(0.02, 7.0)),
    ):
        a, variance = sde.scale(t) + 0 * t, sde.std(t).square()
        (a_slope,), (variance_slope,) = (
            torch.autograd.grad(part.sum(), t, retain_graph=True) for part in (a, variance)
        )
        growth = 2 * sde.rate(t) * variance + sde.diffusion_rate(t).square()
        parts[f"scale_of_{name}"] = close(a_slope, sde.rate(t) * a, atol=1e-10)
        parts[f"variance_of_{name}"] = close(variance_slope, growth, rtol=1e-9, atol=1e-12)
        parts[f"start_of_{name}"] = close(torch.cat([sde.scale(zero), sde.std(zero)]), torch.tensor([1.0, 0.0]))
        x = sde.drift(torch.ones(50, 1).double(), t) + sde.volatility(torch.ones(50, 1).double(), t)
        parts[f"coefficients_of_{name}"] = close(x[:, 0], sde.rate(t) + sde.diffusion_rate(t), atol=1e-12)
    return all_of(**parts)


@claim("C-26", "C-27")
def the_stationary_density_does_not_change() -> Evidence:
    """That of dX = −θ(X − m) dt + σ dW is N(m, σ²/2θ); every other density moves there (Diehl sec. 5.1)."""
    edges = torch.linspace(-6, 7, 521, dtype=torch.float64)
    cells = (edges[1:] + edges[:-1]) / 2
    normal = Normal(0.4, 1.3 / 1.4**0.5)
    density = stationary_density(PROCESS.drift, PROCESS.volatility, edges)
    start = Normal(-2.0, 0.5).log_prob(cells).exp()
    start = start / (start * edges.diff()).sum()
    times = torch.tensor([0.0, 0.5, 12.0], dtype=torch.float64)
    kept, moved = (fokker_planck(PROCESS.drift, PROCESS.volatility, each, edges, times) for each in (density, start))
    mean = 0.4 - 2.4 * exp(-0.35)
    variance = 0.25 * exp(-0.7) + 1.3**2 / 1.4 * (1 - exp(-0.7))
    return all_of(
        density=close(density, normal.log_prob(cells).exp(), atol=2e-4),
        mass=close((density * edges.diff()).sum(), 1.0, atol=1e-12),
        unchanged=close(kept[-1], density, atol=1e-9),
        limit=close(moved[-1], density, atol=2e-4),
        density_after_a_half=close(moved[1], Normal(mean, variance**0.5).log_prob(cells).exp(), atol=2e-3),
    )


@claim("C-27")
def ornstein_uhlenbeck_paths_have_the_exact_covariance() -> Evidence:
    """Cov(X_s, X_t) = σ²/2θ e^{−θ|t − s|} of stationary paths; transitions compose (Diehl sec. 5.1)."""
    torch.manual_seed(0)
    times = torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)
    paths = PROCESS.path(PROCESS.stationary().sample((200_000,)), times)
    covariance = torch.cov(paths)
    lags = (times[:, None] - times).abs()
    exact = torch.tensor([[PROCESS.covariance(float(lag)) for lag in row] for row in lags])
    x = torch.tensor(-1.7, dtype=torch.float64)
    once, first = PROCESS.transition(x, 2.0), PROCESS.transition(x, 0.5)
    second = PROCESS.transition(first.mean, 1.5)
    return all_of(
        covariance=close(covariance, exact, atol=0.02),
        formula=close(exact[0], 1.69 / 1.4 * torch.exp(-0.7 * times), rtol=1e-6),
        mean=close(paths.mean(1), 0.4, atol=0.015),
        composed_mean=close(second.mean, once.mean, rtol=1e-12),
        composed_variance=close(second.variance + first.variance * exp(-2 * 0.7 * 1.5), once.variance, rtol=1e-12),
    )


@claim("C-26")
def the_probability_flow_of_a_gaussian_scales_its_points() -> Evidence:
    """With data N(m, s²) the flow maps x to a m + (x − m)√(a²s² + b²)/s, and back (Diehl sec. 5.1)."""
    sde, m, s = variance_preserving(), 0.8, 0.5
    x = torch.linspace(-1, 2, 7, dtype=torch.float64)[:, None]

    def score(x: Tensor, t: Tensor) -> Tensor:
        return (sde.scale(t)[:, None] * m - x) / (sde.scale(t).square() * s**2 + sde.std(t).square())[:, None]

    times = torch.linspace(0, 1, 401, dtype=torch.float64)
    end, one = solve_probability_flow(sde, score, x, times), times[-1]
    std = (sde.scale(one).square() * s**2 + sde.std(one).square()).sqrt()
    return all_of(
        forwards=close(end, sde.scale(one) * m + (x - m) * std / s, atol=1e-7),
        back=close(solve_probability_flow(sde, score, end, times.flip(0)), x, atol=1e-7),
    )


@claim("B13.2.2-3")
def ancestral_sampling_follows_its_formula() -> Evidence:
    """x_{t−1} = (x_t − (1 − α_t)/√(1 − ᾱ_t) ε)/√α_t + √Σ z, without z at the end (book alg. 13.2, corrected)."""
    schedule = linear_schedule(6, low=0.02, high=0.5)
    x = standard_normal(4, 2)
    parts = {}
    for name, variance in (("posterior", posterior_variance), ("forward", forward_variance)):
        torch.manual_seed(0)
        path = list(ddpm_path(lambda x, t: x.sin() * (1 + t[:, None]), schedule, x, variance=variance))
        torch.manual_seed(0)
        states, state = [x], x
        for t in reversed(range(6)):
            alpha, alpha_bar = schedule.alpha[t], schedule.alpha[: t + 1].prod()
            state = (state - (1 - alpha) / (1 - alpha_bar).sqrt() * state.sin() * (1 + t)) / alpha.sqrt()
            if t > 0:
                before = schedule.alpha[:t].prod()
                sigma = 1 - alpha if name == "forward" else (1 - alpha) * (1 - before) / (1 - alpha_bar)
                state = state + sigma.sqrt() * torch.randn_like(state)
            states.append(state)
        parts[name] = close(torch.stack(path), torch.stack(states), atol=1e-12)
    return all_of(**parts)


@claim("B13.2.3-1")
def pixel_probabilities_sum_to_one() -> Evidence:
    """Each of five values has the mass of its bin under N(μ, σ²), the outer ones with the tails (Ho et al. 2020)."""
    values, mean = torch.linspace(-1, 1, 5, dtype=torch.float64), torch.tensor([-1.3, -0.2, 0.55, 0.9]).double()
    decode = pixel_decoder(0.3, levels=5)
    log_prob = torch.stack([decode(value.expand(4, 1), mean[:, None]) for value in values])
    bounds = torch.tensor([-torch.inf, -0.75, -0.25, 0.25, 0.75, torch.inf], dtype=torch.float64)
    masses = torch.special.ndtr((bounds[:, None] - mean) / 0.3).diff(dim=0)
    far = pixel_decoder(0.01, levels=256)(torch.ones(1, 1).double(), -torch.ones(1, 1).double())
    return all_of(
        masses=close(log_prob.exp(), masses, atol=1e-12),
        sums=close(log_prob.exp().sum(0), 1.0, atol=1e-12),
        far_values_are_finite=close(far.isfinite().double(), 1.0),
    )


@claim("B13.2.4-2")
def matching_terms_are_scaled_distances_of_means() -> Evidence:
    """Each term of the bound is ½‖μ_θ − μ_q‖²/Σ_q(t) for the noise drawn at its step (book eq. 13.64)."""
    schedule, x0, noise = linear_schedule(7, low=0.02, high=0.5), standard_normal(3, 2), standard_normal(3, 2, seed=1)

    def denoiser(x: Tensor, t: Tensor) -> Tensor:
        return x.cos() + t[:, None] / 5

    found, expected = elbo_terms(denoiser, schedule, x0, noise=lambda _: noise).matching, []
    for step in range(1, 7):
        t = torch.full((3,), step)
        x = diffuse(schedule, x0, t, noise)
        difference = mean_from_noise(schedule, x, t, denoiser(x, t)) - posterior_mean(schedule, x, x0, t)
        expected.append(difference.square().sum(1) / (2 * posterior_variance(schedule)[step]))
    return all_of(terms=close(found, torch.stack(expected, 1), rtol=1e-9), positive=greater_equal(found, 1e-3))
