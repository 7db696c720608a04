"""Claims about what a network may be asked for, and about the variance of the way back (book secs. 13.2.2-13.2.4)."""

import torch

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.diffusion.elbo import elbo_terms
from parnassus.diffusion.learned_variance import hybrid, learned_elbo_terms, optimal_variance
from parnassus.diffusion.objectives import weighted, weighted_x0, x0_weight
from parnassus.diffusion.oracles import gaussian_oracle, gaussian_reverse_variance
from parnassus.diffusion.predictions import DATA, NOISE, SCORE, VELOCITY, velocity
from parnassus.diffusion.process import (
    diffuse,
    forward_variance,
    noise_from_score,
    noise_from_x0,
    posterior_variance,
)
from parnassus.diffusion.schedules import cosine_schedule, linear_schedule


@claim("B13.2.4-3", "B13.2.4-4", "B13.2.6-4")
def four_outputs_name_one_noise() -> Evidence:
    """ε from x_0, from v and from the score, and back again, at every step of the chain (book eq. 13.71)."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    x0, noise = torch.randn(2, 1_000, 3, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    v = velocity(schedule, x0, t, noise)
    score = SCORE.output(schedule, x, t, noise)
    return all_of(
        data=close(DATA.noise(schedule, x, t, x0), noise, atol=1e-9),
        as_before=close(DATA.noise(schedule, x, t, x), noise_from_x0(schedule, x, t, x), atol=1e-9),
        velocity=close(VELOCITY.noise(schedule, x, t, v), noise, atol=1e-12),
        score=close(noise_from_score(schedule, t, score), noise, atol=1e-12),
        back_to_data=close(DATA.output(schedule, x, t, noise), x0, atol=1e-9),
        back_to_velocity=close(VELOCITY.output(schedule, x, t, noise), v, atol=1e-9),
    )


@claim("B13.2.4-3", "B13.2.4-4")
def the_outputs_differ_by_their_weights_alone() -> Evidence:
    """‖x_θ − x_0‖² weighs ‖ε_θ − ε‖² by 1/SNR, ‖v_θ − v‖² by 1 + 1/SNR: the choice of output is a choice of weight."""
    torch.manual_seed(0)
    schedule, t = cosine_schedule(1_000), torch.arange(1_000)
    x0, noise, guess = torch.randn(3, 1_000, 3, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    parts = {}
    for name, prediction, share in (
        ("data", DATA, 1 / schedule.snr),
        ("velocity", VELOCITY, 1 + 1 / schedule.snr),
        ("noise", NOISE, torch.ones(1_000).double()),
    ):
        truth, found = (prediction.output(schedule, x, t, e) for e in (noise, guess))
        by_noise = weighted(prediction.weight)(lambda _x, _t: guess, schedule, x0, t, noise)
        parts[f"error_of_{name}"] = close((found - truth).square().sum(1), by_noise, rtol=1e-6)
        parts[f"weight_of_{name}"] = close(prediction.weight(schedule), share, rtol=1e-9)
    return all_of(**parts)


@claim("B13.2.4-3")
def predicting_the_data_pays_the_same_divergence_as_predicting_the_noise() -> Evidence:
    """½ (SNR_{t−1} − SNR_t) ‖x_θ − x_0‖² does not care by which output x_θ was found (book eq. 13.70)."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1, 1_000)
    x0, noise, v = torch.randn(3, 999, 3, dtype=torch.float64)
    by_data = weighted_x0(x0_weight)(
        lambda x, t: DATA.output(schedule, x, t, VELOCITY.noise(schedule, x, t, v)), schedule, x0, t, noise
    )
    by_velocity = weighted(lambda s: x0_weight(s) * DATA.weight(s))(
        lambda x, t: VELOCITY.noise(schedule, x, t, v), schedule, x0, t, noise
    )
    return close(by_data, by_velocity, rtol=1e-8)


@claim("B13.2.4-4")
def the_velocity_is_as_large_at_every_step() -> Evidence:
    """For data of variance 1, v has variance 1 at every t; it is the derivative of x_t along the angle (cos φ = √ᾱ)."""
    torch.manual_seed(0)
    schedule = cosine_schedule(1_000)
    x0, noise = torch.randn(2, 20_000, 1, dtype=torch.float64)
    sizes = torch.stack(
        [velocity(schedule, x0, torch.full((20_000,), step), noise).var() for step in (0, 250, 500, 750, 999)]
    )
    angle = torch.tensor(0.7, dtype=torch.float64)
    t = torch.zeros(20_000, dtype=torch.long)
    along = (x0 * (angle + 1e-5).cos() + noise * (angle + 1e-5).sin()) - (
        x0 * (angle - 1e-5).cos() + noise * (angle - 1e-5).sin()
    )
    at_angle = type(schedule).of(angle.cos().square().reshape(1))
    return all_of(
        variance=close(sizes, 1.0, atol=0.05), tangent=close(velocity(at_angle, x0, t, noise), along / 2e-5, atol=1e-8)
    )


@claim("B13.2.3-1")
def the_best_variance_of_gaussian_data_is_the_exact_one() -> Evidence:
    """Σ_q + (1 − α)²/((1 − ᾱ)α) E‖ε_θ − ε‖² is Var[x_{t−1}|x_t] for N(0, s²), and lies between Σ_q and 1 − α_t."""
    schedule, std = linear_schedule(1_000), 0.6
    signal = schedule.alpha_bar * std**2
    best = optimal_variance(schedule, signal / (signal + 1 - schedule.alpha_bar))  # Var[ε | x_t]
    return all_of(
        exact=close(best, gaussian_reverse_variance(schedule, std), rtol=1e-9),
        above=at_least(best - posterior_variance(schedule), 0.0),
        below=at_most(best - forward_variance(schedule), 0.0),
    )


@claim("B13.2.3-1")
def the_best_variance_lifts_the_bound() -> Evidence:
    """On N(0, 0.36) with 20 steps Σ_q loses more than 3 nats of the bound, the best variance hardly any."""
    torch.manual_seed(0)
    schedule, std = linear_schedule(20, low=0.005, high=0.9), 0.6
    oracle = gaussian_oracle(schedule, torch.zeros(1, dtype=torch.float64), std)
    x0 = std * torch.randn(20_000, 1, dtype=torch.float64)
    truth = torch.distributions.Normal(0.0, std).log_prob(x0).mean()
    best = elbo_terms(oracle, schedule, x0, variance=lambda s: gaussian_reverse_variance(s, std))
    plain = elbo_terms(oracle, schedule, x0)
    return all_of(
        gap_with_the_best=close(truth - best.nats.mean(), 0.0, atol=0.01),
        gap_with_the_posterior=at_least(truth - plain.nats.mean(), 3.0),
    )


@claim("B13.2.3-1")
def the_hybrid_loss_finds_the_best_variance_and_leaves_the_mean_alone() -> Evidence:
    """One share a step, trained on N(0, 0.36), ends at the exact reverse variance; ε_θ feels the simple loss only."""
    torch.manual_seed(0)
    schedule, std = linear_schedule(10, low=0.02, high=0.8), 0.6
    oracle = gaussian_oracle(schedule, torch.zeros(1, dtype=torch.float64), std)
    shares = torch.zeros(10, 1, dtype=torch.float64, requires_grad=True)
    objective = hybrid(lambda x, t: shares[t].expand_as(x), weight=0.1)
    optimizer = torch.optim.Adam([shares], lr=0.1)
    for step in range(250):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step / 30)
        x0, noise = std * torch.randn(1_000, 1, dtype=torch.float64), torch.randn(1_000, 1, dtype=torch.float64)
        optimizer.zero_grad()
        objective(oracle, schedule, x0, torch.randint(10, (1_000,)), noise).mean().backward()
        optimizer.step()
    low, high = posterior_variance(schedule)[1:].log(), forward_variance(schedule)[1:].log()
    exact = (gaussian_reverse_variance(schedule, std)[1:].log() - low) / (high - low)
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    losses = objective(lambda x, t: oracle(x, t) + bias, schedule, x0, torch.full((1_000,), 4), noise)
    found = torch.autograd.grad(losses.mean(), bias)[0]
    x = diffuse(schedule, x0, torch.full((1_000,), 4), noise)
    torch.manual_seed(1)
    terms = learned_elbo_terms(oracle, lambda x, t: shares[t].expand_as(x), schedule, x0)
    torch.manual_seed(1)  # the same noise for both
    best = elbo_terms(oracle, schedule, x0, variance=lambda s: gaussian_reverse_variance(s, std))
    return all_of(
        shares=close(shares[1:, 0], exact, atol=0.05),
        gradient_of_the_mean=close(found, 2 * (oracle(x, torch.full((1_000,), 4)) - noise).mean(), rtol=1e-9),
        bound=close(terms.matching.mean(0), best.matching.mean(0), atol=0.02),
    )
