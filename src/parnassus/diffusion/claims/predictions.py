"""Claims about prediction types and the reverse variance (book secs. 13.2.2-13.2.4)."""

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.diffusion.chain.elbo import elbo_terms
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser, gaussian_reverse_variance
from parnassus.diffusion.chain.forward_process import diffuse, forward_variance
from parnassus.diffusion.chain.gaussian_posterior import posterior_variance
from parnassus.diffusion.chain.learned_variance import hybrid_objective, learned_variance_elbo_terms, optimal_variance
from parnassus.diffusion.chain.objectives import weighted_objective, weighted_x0_objective, x0_weight
from parnassus.diffusion.chain.predictions import (
    DATA,
    NOISE,
    SCORE,
    VELOCITY,
    noise_from_score,
    noise_from_x0,
    velocity,
)
from parnassus.diffusion.chain.schedules import cosine_schedule, linear_schedule


@claim("B13.2.4-3", "B13.2.4-4", "B13.2.6-4")
def predictions_of_data_noise_velocity_and_score_are_equivalent() -> Evidence:
    """ε converts to x_0, v and score and back, at every step of the chain (book eq. 13.71)."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    x0, noise = torch.randn(2, 1_000, 3, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    v = velocity(schedule, x0, t, noise)
    score = SCORE.output(schedule, x, t, noise)
    return all_of(
        from_data=close(DATA.noise(schedule, x, t, x0), noise, atol=1e-9),
        noise_from_x0=close(DATA.noise(schedule, x, t, x), noise_from_x0(schedule, x, t, x), atol=1e-9),
        from_velocity=close(VELOCITY.noise(schedule, x, t, v), noise, atol=1e-12),
        from_score=close(noise_from_score(schedule, t, score), noise, atol=1e-12),
        to_data=close(DATA.output(schedule, x, t, noise), x0, atol=1e-9),
        to_velocity=close(VELOCITY.output(schedule, x, t, noise), v, atol=1e-9),
    )


@claim("B13.2.4-3", "B13.2.4-4")
def predictions_differ_in_the_weight_of_the_loss_only() -> Evidence:
    """‖x_θ − x_0‖² = ‖ε_θ − ε‖² / SNR and ‖v_θ − v‖² = (1 + 1/SNR) ‖ε_θ − ε‖²."""
    torch.manual_seed(0)
    schedule, t = cosine_schedule(1_000), torch.arange(1_000)
    x0, noise, predicted_noise = torch.randn(3, 1_000, 3, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    parts = {}
    for name, prediction, weight in (
        ("data", DATA, 1 / schedule.snr),
        ("velocity", VELOCITY, 1 + 1 / schedule.snr),
        ("noise", NOISE, torch.ones(1_000).double()),
    ):
        truth, predicted = (prediction.output(schedule, x, t, e) for e in (noise, predicted_noise))
        by_noise = weighted_objective(prediction.weight)(lambda _x, _t: predicted_noise, schedule, x0, t, noise)
        parts[f"error_of_{name}"] = close((predicted - truth).square().sum(1), by_noise, rtol=1e-6)
        parts[f"weight_of_{name}"] = close(prediction.weight(schedule), weight, rtol=1e-9)
    return all_of(**parts)


@claim("B13.2.4-3")
def the_kl_is_independent_of_the_prediction_type() -> Evidence:
    """½ (SNR_{t−1} − SNR_t) ‖x_θ − x_0‖² is the same for data and for velocity prediction (book eq. 13.70)."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1, 1_000)
    x0, noise, v = torch.randn(3, 999, 3, dtype=torch.float64)
    by_data = weighted_x0_objective(x0_weight)(
        lambda x, t: DATA.output(schedule, x, t, VELOCITY.noise(schedule, x, t, v)), schedule, x0, t, noise
    )
    by_velocity = weighted_objective(lambda s: x0_weight(s) * DATA.weight(s))(
        lambda x, t: VELOCITY.noise(schedule, x, t, v), schedule, x0, t, noise
    )
    return close(by_data, by_velocity, rtol=1e-8)


@claim("B13.2.4-4")
def the_velocity_has_unit_variance_at_every_step() -> Evidence:
    """For data of variance 1, v has variance 1 at every t; it is dx_t/dφ for the angle φ with cos φ = √ᾱ_t."""
    torch.manual_seed(0)
    schedule = cosine_schedule(1_000)
    x0, noise = torch.randn(2, 20_000, 1, dtype=torch.float64)
    variances = torch.stack(
        [velocity(schedule, x0, torch.full((20_000,), step), noise).var() for step in (0, 250, 500, 750, 999)]
    )
    angle = torch.tensor(0.7, dtype=torch.float64)
    t = torch.zeros(20_000, dtype=torch.long)
    difference = (x0 * (angle + 1e-5).cos() + noise * (angle + 1e-5).sin()) - (
        x0 * (angle - 1e-5).cos() + noise * (angle - 1e-5).sin()
    )
    at_angle = type(schedule).from_alpha(angle.cos().square().reshape(1))
    return all_of(
        variance=close(variances, 1.0, atol=0.05),
        tangent=close(velocity(at_angle, x0, t, noise), difference / 2e-5, atol=1e-8),
    )


@claim("B13.2.3-1")
def the_optimal_variance_is_exact_for_gaussian_data() -> Evidence:
    """Σ_q + (1 − α)²/((1 − ᾱ)α) E‖ε_θ − ε‖² is Var[x_{t−1}|x_t] for N(0, s²), between Σ_q and 1 − α_t."""
    schedule, std = linear_schedule(1_000), 0.6
    signal = schedule.alpha_bar * std**2
    optimal = optimal_variance(schedule, signal / (signal + 1 - schedule.alpha_bar))  # Var[ε | x_t]
    return all_of(
        exact=close(optimal, gaussian_reverse_variance(schedule, std), rtol=1e-9),
        above=greater_equal(optimal - posterior_variance(schedule), 0.0),
        below=less_equal(optimal - forward_variance(schedule), 0.0),
    )


@claim("B13.2.3-1")
def the_optimal_variance_tightens_the_bound() -> Evidence:
    """On N(0, 0.36) with 20 steps the gap of the bound is above 3 nats with Σ_q, near 0 with the optimal variance."""
    torch.manual_seed(0)
    schedule, std = linear_schedule(20, low=0.005, high=0.9), 0.6
    oracle = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), std)
    x0 = std * torch.randn(20_000, 1, dtype=torch.float64)
    truth = torch.distributions.Normal(0.0, std).log_prob(x0).mean()
    optimal = elbo_terms(oracle, schedule, x0, variance=lambda s: gaussian_reverse_variance(s, std))
    posterior = elbo_terms(oracle, schedule, x0)
    return all_of(
        gap_with_optimal_variance=close(truth - optimal.elbo.mean(), 0.0, atol=0.01),
        gap_with_posterior_variance=greater_equal(truth - posterior.elbo.mean(), 3.0),
    )


@claim("B13.2.3-1")
def the_hybrid_loss_learns_the_optimal_variance_without_changing_the_mean() -> Evidence:
    """On N(0, 0.36) the variance converges to the exact one; the gradient of ε_θ is that of the simple loss."""
    torch.manual_seed(0)
    schedule, std = linear_schedule(10, low=0.02, high=0.8), 0.6
    oracle = gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), std)
    fractions = torch.zeros(10, 1, dtype=torch.float64, requires_grad=True)
    objective = hybrid_objective(lambda x, t: fractions[t].expand_as(x), weight=0.1)
    optimizer = torch.optim.Adam([fractions], lr=0.1)
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
    gradient = torch.autograd.grad(losses.mean(), bias)[0]
    x = diffuse(schedule, x0, torch.full((1_000,), 4), noise)
    torch.manual_seed(1)
    terms = learned_variance_elbo_terms(oracle, lambda x, t: fractions[t].expand_as(x), schedule, x0)
    torch.manual_seed(1)  # the same noise for both
    optimal = elbo_terms(oracle, schedule, x0, variance=lambda s: gaussian_reverse_variance(s, std))
    return all_of(
        fractions=close(fractions[1:, 0], exact, atol=0.05),
        gradient_of_the_mean=close(gradient, 2 * (oracle(x, torch.full((1_000,), 4)) - noise).mean(), rtol=1e-9),
        bound=close(terms.matching.mean(0), optimal.matching.mean(0), atol=0.02),
    )
