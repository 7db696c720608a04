"""Claims about the forward chain and its schedules (book secs. 13.2, 13.2.1)."""

import torch
from scipy import stats
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from parnassus.atlas import Evidence, accepts, all_of, claim, close, greater_equal, less_equal, rejects
from parnassus.diffusion.chain.elbo import elbo_terms, gaussian_decoder, prior_kl
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse, forward_log_prob, forward_step
from parnassus.diffusion.chain.gaussian_posterior import combined_std
from parnassus.diffusion.chain.schedules import (
    LearnableSchedule,
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)
from parnassus.diffusion.claims.exact_expectations import SIGNS


@claim("B13.2-1")
def the_chain_ends_in_a_standard_normal() -> Evidence:
    """KL(q(x_T|x_0) ‖ N(0, I)) ≈ 0 after 1,000 linear steps, with ᾱ_T = 4·10⁻⁵; the first 100 steps do not suffice."""
    image = torch.ones(1, 64, dtype=torch.float64)  # pixels at the edge of [−1, 1] are the worst case
    long, short = linear_schedule(1_000), linear_schedule(100)
    return all_of(
        remaining_signal=close(long.alpha_bar[-1], 4.036e-5, rtol=1e-3),
        prior_kl_1000_steps=less_equal(prior_kl(long, image), 2e-3),
        prior_kl_100_steps=greater_equal(prior_kl(short, image), 10.0),
    )


@claim("B13.2-1")
def one_step_of_diffusion_is_a_vae() -> Evidence:
    """With T = 1 the bound is that of a VAE with a fixed encoder: E log p(x_0|x_1) − KL(q(x_1|x_0) ‖ N(0, I))."""
    schedule = constant_schedule(1, noise=0.7)
    x0, noise = SIGNS[:, :1] * 0.8, SIGNS[:, 1:]
    denoiser = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), std=0.8)
    terms = elbo_terms(denoiser, schedule, x0, noise=lambda _: noise, decoder=gaussian_decoder(0.2))

    encoder = Normal(0.3**0.5 * x0, 0.7**0.5)
    z = encoder.mean + encoder.stddev * noise
    decoder = Normal(z * 0.3**0.5 * 0.64 / (0.3 * 0.64 + 0.7), 0.2**0.5)  # E[x_0 | z] of the joint Gaussian
    kl = torch.distributions.kl_divergence(encoder, Normal(torch.zeros_like(x0), 1.0))
    return close(terms.elbo, (decoder.log_prob(x0) - kl)[:, 0], atol=1e-12)


@claim("B13.2.1-1")
def alpha_bar_decreases_for_every_schedule() -> Evidence:
    """0 < α_t < 1 and ᾱ_t decreases strictly, for fixed schedules and for a learnable one with any parameters."""
    learnable = LearnableSchedule(linear_schedule(200))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        learnable.omega.copy_(5 * torch.randn(199, generator=generator) - 5)
        arbitrary = learnable()
    schedules = [linear_schedule(1_000), cosine_schedule(1_000), constant_schedule(1_000), sigmoid_schedule(1_000)]
    smallest = torch.stack([schedule.alpha.min() for schedule in [*schedules, arbitrary]])
    largest = torch.stack([schedule.alpha.max() for schedule in [*schedules, arbitrary]])
    decreases = torch.stack([(s.alpha_bar_before - s.alpha_bar).min() for s in [*schedules, arbitrary]])
    return all_of(
        above_zero=greater_equal(smallest, 1e-15),
        below_one_by=greater_equal(1 - largest, 1e-15),
        decreasing=greater_equal(decreases, 1e-300),
        learnable_at_initialisation=close(
            LearnableSchedule(schedules[1])().alpha_bar, schedules[1].alpha_bar, rtol=1e-9
        ),
    )


@claim("B13.2.1-1")
def the_log_density_of_a_chain_is_that_of_its_joint_gaussian() -> Evidence:
    """Σ_t log q(x_t|x_{t−1}) is the log-density of one Gaussian with Cov(x_s, x_t) = √(ᾱ_t/ᾱ_s) (1 − ᾱ_s), s ≤ t."""
    generator = torch.Generator().manual_seed(0)
    schedule = linear_schedule(6, low=0.05, high=0.4)
    chain = torch.randn(6, 5, 1, generator=generator, dtype=torch.float64)
    x0 = torch.randn(5, 1, generator=generator, dtype=torch.float64)

    alpha_bar = schedule.alpha_bar
    earlier = torch.maximum(alpha_bar[:, None], alpha_bar)  # ᾱ of the earlier of two steps is the larger
    later = torch.minimum(alpha_bar[:, None], alpha_bar)
    joint = MultivariateNormal(alpha_bar.sqrt() * x0, (later / earlier).sqrt() * (1 - earlier))
    return close(forward_log_prob(schedule, chain, x0), joint.log_prob(chain[..., 0].T), atol=1e-10)


@claim("B13.2.1-1")
def a_schedule_can_be_learned() -> Evidence:
    """Gradient ascent on the exact bound of Gaussian data improves a 10-step linear schedule."""
    learnable = LearnableSchedule(linear_schedule(10, low=0.01, high=0.9))
    optimizer = torch.optim.Adam(learnable.parameters(), lr=0.1)
    bounds = []
    for _ in range(60):
        bound = _bound_of_gaussian_data(learnable())
        optimizer.zero_grad()
        (-bound).backward()
        optimizer.step()
        bounds.append(bound.detach())
    truth = float(-0.5 * torch.log(torch.tensor(2 * torch.pi * torch.e * 0.25)))
    return all_of(
        gained_nats=greater_equal(bounds[-1] - bounds[0], 0.05),
        still_a_bound=less_equal(bounds[-1], truth),
    )


def _bound_of_gaussian_data(schedule: Schedule, std: float = 0.5) -> Tensor:
    """The exact E[ELBO] for x_0 ~ N(0, std²) and the exact denoiser; every term is quadratic."""
    x0, noise = std * SIGNS[:, :1], SIGNS[:, 1:]
    oracle = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), std)
    return elbo_terms(oracle, schedule, x0, noise=lambda _: noise).elbo.mean()


@claim("B13.2.1-2")
def a_step_preserves_unit_variance() -> Evidence:
    """√α x + √(1 − α) ε has variance 1 if x has, at every step; without the factor √α the variance grows."""
    schedule = linear_schedule(1_000)
    steps = torch.arange(1_000)
    x, noise = SIGNS[:, :1].expand(4, 1_000), SIGNS[:, 1:].expand(4, 1_000)
    after = torch.stack([forward_step(schedule, x[i], steps, noise[i]) for i in range(4)])
    growing = x[:, 0] + torch.stack([(1 - schedule.alpha).sqrt().norm() * noise[i, 0] for i in range(4)])
    return all_of(
        variance=close(after.square().mean(0), 1.0, atol=1e-12),
        without_the_factor=greater_equal(growing.square().mean(), 10.0),
    )


@claim("B13.2.1-3")
def the_sum_of_two_gaussian_noises_is_gaussian() -> Evidence:
    """√(α_t − α_t α_{t−1}) ε₁ + √(1 − α_t) ε₂ has variance 1 − α_t α_{t−1} and a normal distribution."""
    torch.manual_seed(0)
    alpha = linear_schedule(1_000).alpha
    first, second = (alpha[1:] * (1 - alpha[:-1])).sqrt(), (1 - alpha[1:]).sqrt()
    merged = combined_std(first, second)
    total = first[500] * torch.randn(20_000) + second[500] * torch.randn(20_000)
    return all_of(
        variance=close(merged.square(), 1 - alpha[1:] * alpha[:-1], rtol=1e-10),
        distribution=accepts(stats.kstest((total / merged[500]).numpy(), "norm").pvalue),
    )


@claim("B13.2.1-3")
def direct_sampling_of_x_t_equals_iterated_steps() -> Evidence:
    """After t steps the distribution is N(√ᾱ_t x_0, (1 − ᾱ_t) I); with α_t in place of ᾱ_t it is not."""
    torch.manual_seed(0)
    schedule, count = linear_schedule(1_000), 10_000
    x = torch.full((count, 1), 1.5, dtype=torch.float64)
    direct, iterated = [], []
    for step in range(1_000):
        t = torch.full((count,), step)
        x = forward_step(schedule, x, t, torch.randn_like(x))
        if step in {9, 99, 499, 999}:
            iterated.append(_ks(x, schedule.alpha_bar[step]))
            direct.append(
                _ks(diffuse(schedule, torch.full_like(x, 1.5), t, torch.randn_like(x)), schedule.alpha_bar[step])
            )
    return all_of(
        iterated=accepts(min(iterated)),
        direct=accepts(min(direct)),
        alpha_for_alpha_bar=rejects(_ks(x, schedule.alpha[-1])),
    )


def _ks(x: Tensor, alpha_bar: Tensor) -> float:
    """The p-value of x ~ N(1.5 √ᾱ, 1 − ᾱ)."""
    standard = (x[:, 0] - 1.5 * alpha_bar.sqrt()) / (1 - alpha_bar).sqrt()
    return float(stats.kstest(standard.numpy(), "norm").pvalue)
