"""Claims about DDIM, with exact denoisers (book sec. 13.2.5)."""

import torch
from scipy import stats
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.diffusion.claims.truths import distances, two_modes
from parnassus.diffusion.gaussian import linear_gaussian_posterior
from parnassus.diffusion.oracles import gaussian_oracle
from parnassus.diffusion.process import diffuse, posterior_mean, posterior_variance, x0_from_noise
from parnassus.diffusion.samplers import (
    ddim,
    ddim_path,
    ddim_posterior_mean,
    ddim_variance,
    ddpm,
    ddpm_path,
    even_grid,
    slerp,
)
from parnassus.diffusion.schedules import Schedule, linear_schedule


@claim("B13.2.5-1")
def every_admissible_variance_keeps_the_marginals() -> Evidence:
    """q_σ(x_{t−1}|x_0) is N(√ᾱ_{t−1} x_0, (1 − ᾱ_{t−1}) I) for σ = 0, for DDPM's and for any in between."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    before = schedule.alpha_bar_before
    x0 = torch.randn(1_000, 1, dtype=torch.float64)
    means, variances = [], []
    for variance in (torch.zeros_like(before), posterior_variance(schedule), torch.rand(1_000).double() * (1 - before)):
        means.append(ddim_posterior_mean(schedule, schedule.alpha_bar.sqrt()[:, None] * x0, x0, t, variance))
        one, none = torch.ones_like(x0), torch.zeros_like(x0)
        slope = ddim_posterior_mean(schedule, one, none, t, variance)[:, 0]  # of x_{t−1} in x_t
        variances.append(slope.square() * (1 - schedule.alpha_bar) + variance)
    return all_of(
        mean=close(torch.stack(means), before.sqrt()[:, None] * x0, atol=1e-10),
        variance=close(torch.stack(variances), 1 - before, atol=1e-12),
    )


@claim("B13.2.5-1")
def a_variance_above_what_is_left_has_no_process() -> Evidence:
    """σ_t² = 1 − ᾱ_{t−1} still gives a real mean; a little more gives none."""
    schedule, t = linear_schedule(1_000), torch.arange(1, 1_000)
    x = torch.ones(999, 1, dtype=torch.float64)
    left = 1 - schedule.alpha_bar_before
    at_the_edge = ddim_posterior_mean(schedule, x, x, t, left)
    beyond = ddim_posterior_mean(schedule, x, x, t, 1.01 * left)
    return all_of(
        real_at_the_edge=close(at_the_edge.isfinite().double(), 1.0),
        real_beyond=close(beyond.isfinite().double(), 0.0),
    )


@claim("B13.2.5-1")
def only_the_ddpm_variance_makes_the_forward_chain_markov() -> Evidence:
    """q_σ(x_t|x_{t−1}, x_0) forgets x_0 at DDPM's σ, and there is the forward kernel; at half that σ it does not."""
    schedule, step = linear_schedule(20, low=0.01, high=0.5), 8
    sigma = posterior_variance(schedule)
    forgetting, remembering = (_forward_mean(schedule, step, variance) for variance in (sigma, sigma / 4))
    kernel = schedule.alpha[step].sqrt() * 0.4
    return all_of(
        of_two_x0=close(forgetting[0], forgetting[1], atol=1e-10),
        kernel=close(forgetting[0], kernel, atol=1e-10),
        at_half=at_least((remembering[0] - remembering[1]).abs(), 0.05),
    )


def _forward_mean(schedule: Schedule, step: int, variance: Tensor) -> list[Tensor]:
    """E[x_t | x_{t−1} = 0.4, x_0] under q_σ for x_0 = −1 and x_0 = 1, by Bayes' rule."""
    t = torch.tensor([step])
    none, one = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    slope = ddim_posterior_mean(schedule, one, none, t, variance)
    means = []
    for x0 in (-one, one):
        mean, _ = linear_gaussian_posterior(
            torch.tensor([0.4], dtype=torch.float64),
            mean=schedule.alpha_bar[step].sqrt() * x0[0],
            precision=one / (1 - schedule.alpha_bar[step]),
            A=slope,
            b=ddim_posterior_mean(schedule, none, x0, t, variance)[0],
            noise_precision=one / variance[step],
        )
        means.append(mean)
    return means


@erratum("B13.2.5-1", printed="mean √(ᾱ_t ᾱ_{t−1}) x_{t−1}", right="mean √(ᾱ_t / ᾱ_{t−1}) x_{t−1}")
def the_kernel_in_the_other_notation_divides() -> Correction:
    """In the notation where α_t means ᾱ_t the one-step factor is a quotient; two steps must add up to ᾱ_t."""
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
    """The σ that should turn DDIM into DDPM has a fraction bar in the wrong place: it exceeds 1 − ᾱ_{t−1}."""
    schedule = linear_schedule(1_000)
    before, after = schedule.alpha_bar_before[1:], schedule.alpha_bar[1:]
    ratio = (1 - before) / (1 - after)
    return Correction(
        printed=at_most(ratio * (1 - after) / before**2, 1 - before),
        corrected=all_of(
            admissible=at_most(ratio * (1 - after / before), 1 - before),
            is_the_posterior=close(ratio * (1 - after / before), posterior_variance(schedule)[1:], rtol=1e-9),
        ),
    )


@claim("B13.2.5-2")
def ddim_with_eta_one_is_ddpm() -> Evidence:
    """At η = 1 over all steps the variance, the mean and, with one seed, the whole path are those of DDPM."""
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
def ddim_visits_its_own_grid_and_ends_in_the_clean_guess() -> Evidence:
    """The denoiser is asked at the kept steps, in falling order, and nowhere else; the end is x̂_0; η = 0 repeats."""
    schedule, grid = linear_schedule(1_000), torch.tensor([3, 50, 51, 400, 998])
    oracle, asked = two_modes(schedule), []

    def listening(x: Tensor, t: Tensor) -> Tensor:
        asked.append(t[0])
        return oracle(x, t)

    torch.manual_seed(0)
    start = torch.randn(100, 1, dtype=torch.float64)
    *_, before, end = ddim_path(listening, schedule, start, grid=grid)
    t = torch.full((100,), 3)
    return all_of(
        visited=close(torch.stack(asked), grid.flip(0)),
        last=close(end, x0_from_noise(schedule, before, t, oracle(before, t)), atol=1e-12),
        repeated=close(ddim(oracle, schedule, start, grid=grid), end),
    )


@erratum("B13.2.5-2", printed="ε_θ predicts ε_t, the fresh noise", right="ε_θ predicts the noise contained in x_t")
def the_network_predicts_the_noise_inside() -> Correction:
    """No function of x_t can know the noise of the step to come: the best guess misses it by more than its variance."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.full((50_000,), 300)
    x0, noise, fresh = torch.randn(3, 50_000, 1, dtype=torch.float64)
    guess = gaussian_oracle(schedule, torch.zeros(1, dtype=torch.float64), 1.0)(diffuse(schedule, x0, t, noise), t)
    least = schedule.alpha_bar[300]  # Var[ε | x_t] for unit normal data
    return Correction(
        printed=close((guess - fresh).square().mean(), least, rtol=0.03),
        corrected=close((guess - noise).square().mean(), least, rtol=0.03),
    )


@claim("B13.2.5-3")
def fewer_steps_lead_from_the_same_noise_to_nearly_the_same_sample() -> Evidence:
    """One x_T, 10 to 100 steps: the distance to the 1,000-step sample falls about as 1/steps and is small at 50."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    start = torch.randn(2_000, 1, dtype=torch.float64)
    counts = torch.tensor([10, 20, 50, 100])
    grids = [even_grid(1_000, count) for count in counts.tolist()]
    found = distances(ddim, oracle, start, grids, end=ddim(oracle, schedule, start))
    return all_of(falls=rate(counts, found, -1.0, atol=0.25), at_50=at_most(found[2], 0.05))


@claim("B13.2.5-3")
def a_hundred_deterministic_steps_do_the_work_of_a_thousand_random_ones() -> Evidence:
    """From noise 1.2 away from the data, 1,000 DDPM steps lead to within 0.02, 100 DDIM steps to within 0.04."""
    schedule = linear_schedule(1_000)
    oracle = two_modes(schedule)
    torch.manual_seed(0)
    truth, _ = oracle.draw(100_000)
    start = torch.randn(4_000, 1, dtype=torch.float64)

    def distance(x: Tensor) -> float:
        """Wasserstein's, between |x| and the |x_0| of the data: blind to how many samples took either side."""
        return float(stats.wasserstein_distance(x[:, 0].abs().numpy(), truth[:, 0].abs().numpy()))

    return all_of(
        noise=close(distance(start), 1.21, atol=0.03),
        ddpm_in_1000=at_most(distance(ddpm(oracle, schedule, start)), 0.02),
        ddim_in_100=at_most(distance(ddim(oracle, schedule, start, grid=even_grid(1_000, 100))), 0.04),
    )


@claim("B13.2.5-3")
def a_great_arc_stays_where_noise_lives() -> Evidence:
    """Between two noises in 1,000 dimensions the arc keeps their length; the straight line falls to 1/√2 of it."""
    torch.manual_seed(0)
    start, end = torch.randn(2, 100, 1_000, dtype=torch.float64)
    middle, straight = slerp(start, end, 0.5), (start + end) / 2
    return all_of(
        arc=close(middle.norm(dim=1).mean() / 1_000**0.5, 1.0, atol=0.01),
        line=close(straight.norm(dim=1).mean() / 1_000**0.5, 0.5**0.5, atol=0.01),
        ends=close(
            torch.stack([slerp(start, end, 0.0), slerp(start, end, 1.0)]), torch.stack([start, end]), atol=1e-12
        ),
    )


@claim("B13.2.5-3")
def every_variance_trains_the_same_network() -> Evidence:
    """The KL with x̂_0 for x_0 is c_t(σ) ‖ε_θ − ε‖²: σ changes the weight and nothing else, so one network does."""
    torch.manual_seed(0)
    schedule, step = linear_schedule(1_000), 300
    t = torch.full((50,), step)
    x0, noise, guess = torch.randn(3, 50, 4, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    parts = {}
    for eta in (0.2, 1.0):
        sigma = ddim_variance(schedule, eta=eta)
        means = [ddim_posterior_mean(schedule, x, x0_from_noise(schedule, x, t, e), t, sigma) for e in (noise, guess)]
        weights = (means[0] - means[1]).square().sum(1) / (2 * sigma[step]) / (noise - guess).square().sum(1)
        parts[f"spread_of_the_weight_at_eta_{eta}"] = at_most(weights.std() / weights.mean(), 1e-8)
    return all_of(**parts)
