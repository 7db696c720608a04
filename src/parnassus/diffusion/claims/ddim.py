"""Claims about DDIM, with exact denoisers (book sec. 13.2.5)."""

import torch
from scipy import stats
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.gaussian_posterior import linear_gaussian_posterior, posterior_mean, posterior_variance
from parnassus.diffusion.chain.predictions import x0_from_noise
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.claims.exact_expectations import distances, two_modes
from parnassus.diffusion.samplers.ddim import ddim, ddim_path, ddim_posterior_mean, ddim_variance
from parnassus.diffusion.samplers.ddpm import ddpm, ddpm_path
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.probability.distributions.slerp import slerp


@claim("B13.2.5-1")
def every_admissible_variance_preserves_the_marginals() -> Evidence:
    """q_σ(x_{t−1}|x_0) is N(√ᾱ_{t−1} x_0, (1 − ᾱ_{t−1}) I) for σ = 0, for the σ of DDPM and for random σ."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    before = schedule.alpha_bar_before
    x0 = torch.randn(1_000, 1, dtype=torch.float64)
    means, variances = [], []
    for variance in (
        torch.zeros_like(before),
        posterior_variance(schedule),
        torch.rand(1_000).double() * (1 - before),
        ddim_variance(schedule, eta=0.6),
    ):
        means.append(ddim_posterior_mean(schedule, schedule.alpha_bar.sqrt()[:, None] * x0, x0, t, variance))
        ones, zeros = torch.ones_like(x0), torch.zeros_like(x0)
        slope = ddim_posterior_mean(schedule, ones, zeros, t, variance)[:, 0]  # of x_{t−1} in x_t
        variances.append(slope.square() * (1 - schedule.alpha_bar) + variance)
    return all_of(
        mean=close(torch.stack(means), before.sqrt()[:, None] * x0, atol=1e-10),
        variance=close(torch.stack(variances), 1 - before, atol=1e-12),
        scaled_variance=close(ddim_variance(schedule, eta=0.6), 0.36 * posterior_variance(schedule), rtol=1e-9),
    )


@claim("B13.2.5-1")
def variances_above_the_marginal_variance_are_not_admissible() -> Evidence:
    """The DDIM mean is real for σ_t² = 1 − ᾱ_{t−1} and not for σ_t² = 1.01 (1 − ᾱ_{t−1})."""
    schedule, t = linear_schedule(1_000), torch.arange(1, 1_000)
    x = torch.ones(999, 1, dtype=torch.float64)
    limit = 1 - schedule.alpha_bar_before
    at_the_limit = ddim_posterior_mean(schedule, x, x, t, limit)
    above = ddim_posterior_mean(schedule, x, x, t, 1.01 * limit)
    return all_of(
        finite_at_the_limit=close(at_the_limit.isfinite().double(), 1.0),
        finite_above=close(above.isfinite().double(), 0.0),
    )


@claim("B13.2.5-1")
def only_the_ddpm_variance_makes_the_forward_chain_markov() -> Evidence:
    """q_σ(x_t|x_{t−1}, x_0) is the forward kernel at the σ of DDPM; at half of it, it depends on x_0."""
    schedule, step = linear_schedule(20, low=0.01, high=0.5), 8
    sigma = posterior_variance(schedule)
    ddpm_means, half_means = (_forward_mean(schedule, step, variance) for variance in (sigma, sigma / 4))
    kernel = schedule.alpha[step].sqrt() * 0.4
    return all_of(
        independent_of_x0=close(ddpm_means[0], ddpm_means[1], atol=1e-10),
        kernel=close(ddpm_means[0], kernel, atol=1e-10),
        half_sigma_depends_on_x0=greater_equal((half_means[0] - half_means[1]).abs(), 0.05),
    )


def _forward_mean(schedule: Schedule, step: int, variance: Tensor) -> list[Tensor]:
    """E[x_t | x_{t−1} = 0.4, x_0] under q_σ for x_0 = −1 and x_0 = 1, by Bayes' rule."""
    t = torch.tensor([step])
    zero, one = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    slope = ddim_posterior_mean(schedule, one, zero, t, variance)
    means = []
    for x0 in (-one, one):
        mean, _ = linear_gaussian_posterior(
            torch.tensor([0.4], dtype=torch.float64),
            mean=schedule.alpha_bar[step].sqrt() * x0[0],
            precision=one / (1 - schedule.alpha_bar[step]),
            A=slope,
            b=ddim_posterior_mean(schedule, zero, x0, t, variance)[0],
            noise_precision=one / variance[step],
        )
        means.append(mean)
    return means


@erratum("B13.2.5-1", printed="mean √(ᾱ_t ᾱ_{t−1}) x_{t−1}", right="mean √(ᾱ_t / ᾱ_{t−1}) x_{t−1}")
def the_one_step_factor_in_ddim_notation_is_a_quotient() -> Correction:
    """In the notation of DDIM, where α_t means ᾱ_t, the one-step factor is √(ᾱ_t / ᾱ_{t−1})."""
    schedule = linear_schedule(1_000)
    before, after = schedule.alpha_bar_before, schedule.alpha_bar
    return Correction(
        printed=close((after * before).sqrt() * before.sqrt(), after.sqrt(), rtol=1e-3),
        corrected=close((after / before).sqrt() * before.sqrt(), after.sqrt(), rtol=1e-10),
    )


@erratum(
    "B13.2.5-1",
    printed="σ_t = √((1 − ᾱ_{t−1})/(1 − ᾱ_t)) √(1 − ᾱ_t)/ᾱ_{t−1}",
    right="σ_t = √((1 − ᾱ_{t−1})/(1 − ᾱ_t)) √(1 − ᾱ_t/ᾱ_{t−1})",
)
def the_printed_ddpm_variance_is_not_admissible() -> Correction:
    """The printed σ that should give DDPM has a misplaced fraction bar: σ² exceeds 1 − ᾱ_{t−1}."""
    schedule = linear_schedule(1_000)
    before, after = schedule.alpha_bar_before[1:], schedule.alpha_bar[1:]
    ratio = (1 - before) / (1 - after)
    return Correction(
        printed=less_equal(ratio * (1 - after) / before**2, 1 - before),
        corrected=all_of(
            admissible=less_equal(ratio * (1 - after / before), 1 - before),
            is_the_posterior=close(ratio * (1 - after / before), posterior_variance(schedule)[1:], rtol=1e-9),
        ),
    )


@claim("B13.2.5-2")
def ddim_with_eta_one_is_ddpm() -> Evidence:
    """At η = 1 over all steps variance, mean and, for the same seed, the whole trajectory are those of DDPM."""
    schedule = linear_schedule(200, low=5e-4, high=0.1)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start, x0 = torch.randn(2, 200, 1, dtype=torch.float64)
    t = torch.arange(200)
    sigma = ddim_variance(schedule, eta=1.0)
    paths = []
    for path in (ddim_path(oracle, schedule, start, eta=1.0), ddpm_path(oracle, schedule, start)):
        torch.manual_seed(1)
        paths.append(torch.stack(list(path)))
    return all_of(
        variance=close(sigma, posterior_variance(schedule), atol=1e-14),
        mean=close(
            ddim_posterior_mean(schedule, start, x0, t, sigma), posterior_mean(schedule, start, x0, t), atol=1e-10
        ),
        path=close(paths[0], paths[1], atol=1e-8),
    )


@claim("B13.2.5-2")
def ddim_evaluates_the_grid_and_ends_in_the_x0_prediction() -> Evidence:
    """The denoiser is evaluated at the grid in decreasing order; the result is x̂_0 and deterministic for η = 0."""
    schedule, grid = linear_schedule(1_000), torch.tensor([3, 50, 51, 400, 998])
    oracle, evaluations = two_modes(schedule), []

    def record_step(x: Tensor, t: Tensor) -> Tensor:
        evaluations.append(t[0])
        return oracle(x, t)

    torch.manual_seed(0)
    start = torch.randn(100, 1, dtype=torch.float64)
    *_, before, end = ddim_path(record_step, schedule, start, grid=grid)
    t = torch.full((100,), 3)
    return all_of(
        steps=close(torch.stack(evaluations), grid.flip(0)),
        last=close(end, x0_from_noise(schedule, before, t, oracle(before, t)), atol=1e-12),
        repeated=close(ddim(oracle, schedule, start, grid=grid), end),
    )


@erratum(
    "B13.2.5-2", printed="ε_θ predicts ε_t, the noise added in step t", right="ε_θ predicts the noise contained in x_t"
)
def the_network_predicts_the_noise_contained_in_x_t() -> Correction:
    """The noise added in a step is not that in x_t: the optimal prediction of ε has a larger error for it."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.full((50_000,), 300)
    x0, noise, fresh = torch.randn(3, 50_000, 1, dtype=torch.float64)
    oracle = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), 1.0)
    prediction = oracle(diffuse(schedule, x0, t, noise), t)
    min_error = schedule.alpha_bar[300]  # Var[ε | x_t] for standard normal data
    return Correction(
        printed=close((prediction - fresh).square().mean(), min_error, rtol=0.03),
        corrected=close((prediction - noise).square().mean(), min_error, rtol=0.03),
    )


@claim("B13.2.5-3")
def ddim_samples_converge_with_the_number_of_steps() -> Evidence:
    """From the same x_T the distance to the 1,000-step sample decreases about as 1/steps and is small at 50 steps."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start = torch.randn(2_000, 1, dtype=torch.float64)
    counts = torch.tensor([10, 20, 50, 100])
    grids = [evenly_spaced_steps(1_000, count) for count in counts.tolist()]
    errors = distances(ddim, oracle, start, grids, end=ddim(oracle, schedule, start))
    return all_of(order=rate(counts, errors, -1.0, atol=0.25), at_50_steps=less_equal(errors[2], 0.05))


@claim("B13.2.5-3")
def a_hundred_ddim_steps_are_nearly_as_accurate_as_a_thousand_ddpm_steps() -> Evidence:
    """Wasserstein distance to the data: at most 0.02 after 1,000 DDPM steps and 0.04 after 100 DDIM steps."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    truth, _ = oracle.sample(100_000)
    start = torch.randn(4_000, 1, dtype=torch.float64)

    def distance(x: Tensor) -> float:
        """The Wasserstein distance between |x| and |x_0|, which is independent of the fraction in each mode."""
        return float(stats.wasserstein_distance(x[:, 0].abs().numpy(), truth[:, 0].abs().numpy()))

    return all_of(
        noise=close(distance(start), 1.21, atol=0.03),
        ddpm_in_1000=less_equal(distance(ddpm(oracle, schedule, start)), 0.02),
        ddim_in_100=less_equal(distance(ddim(oracle, schedule, start, grid=evenly_spaced_steps(1_000, 100))), 0.04),
    )


@claim("B13.2.5-3")
def spherical_interpolation_preserves_the_norm_of_noise() -> Evidence:
    """For two noises in 1,000 dimensions the midpoint keeps the norm with slerp; a linear one has 1/√2 of it."""
    torch.manual_seed(0)
    start, end = torch.randn(2, 100, 1_000, dtype=torch.float64)
    middle, straight = slerp(start, end, 0.5), (start + end) / 2
    return all_of(
        midpoint_norm_slerp=close(middle.norm(dim=1).mean() / 1_000**0.5, 1.0, atol=0.01),
        midpoint_norm_linear=close(straight.norm(dim=1).mean() / 1_000**0.5, 0.5**0.5, atol=0.01),
        ends=close(
            torch.stack([slerp(start, end, 0.0), slerp(start, end, 1.0)]), torch.stack([start, end]), atol=1e-12
        ),
    )


@claim("B13.2.5-3")
def the_variance_changes_only_the_weight_of_the_loss() -> Evidence:
    """The KL with x̂_0 in place of x_0 is c_t(σ) ‖ε_θ − ε‖²: σ changes the weight only, so one network serves all σ."""
    torch.manual_seed(0)
    schedule, step = linear_schedule(1_000), 300
    t = torch.full((50,), step)
    x0, noise, predicted = torch.randn(3, 50, 4, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    parts = {}
    for eta in (0.2, 1.0):
        sigma = ddim_variance(schedule, eta=eta)
        means = [
            ddim_posterior_mean(schedule, x, x0_from_noise(schedule, x, t, e), t, sigma) for e in (noise, predicted)
        ]
        weights = (means[0] - means[1]).square().sum(1) / (2 * sigma[step]) / (noise - predicted).square().sum(1)
        parts[f"relative_std_of_the_weight_at_eta_{eta}"] = less_equal(weights.std() / weights.mean(), 1e-8)
    return all_of(**parts)
