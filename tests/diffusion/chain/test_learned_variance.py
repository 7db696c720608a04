"""Learned reverse variances: interpolation between both limits, the bound, sampling and errors."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import (
    ddpm,
    elbo_terms,
    hybrid_objective,
    learned_variance_ddpm,
    linear_schedule,
    optimal_variance,
)
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser, gaussian_reverse_variance
from parnassus.diffusion.chain.forward_process import diffuse, forward_variance
from parnassus.diffusion.chain.gaussian_posterior import posterior_variance
from parnassus.diffusion.chain.learned_variance import (
    bound_term,
    interpolated_log_variance,
    learned_variance_elbo_terms,
)
from parnassus.diffusion.chain.objectives import simple_objective

SCHEDULE = linear_schedule(20, low=0.005, high=0.5)
MEAN = torch.zeros(2, dtype=torch.float64)
ORACLE = gaussian_denoiser(SCHEDULE, MEAN, 0.6)


def zero(x: Tensor, _t: Tensor) -> Tensor:
    return torch.zeros_like(x)


def one(x: Tensor, _t: Tensor) -> Tensor:
    return torch.ones_like(x)


def test_log_variance_interpolates_between_both_limits() -> None:
    t, zeros = torch.arange(20), torch.zeros(20, 1, dtype=torch.float64)
    low, high = (interpolated_log_variance(SCHEDULE, t, zeros + s).exp()[:, 0] for s in (0, 1))
    torch.testing.assert_close(low[1:], posterior_variance(SCHEDULE)[1:])
    torch.testing.assert_close(high, forward_variance(SCHEDULE))
    assert low[0] == low[1]
    middle = interpolated_log_variance(SCHEDULE, t, zeros + 0.5).exp()[:, 0]
    torch.testing.assert_close(middle, (low * high).sqrt())


@pytest.mark.parametrize(("fraction", "variance"), [(zero, posterior_variance), (one, forward_variance)])
def test_bound_at_fractions_0_and_1_matches_fixed_variances(fraction: object, variance: object) -> None:
    assert callable(fraction)
    assert callable(variance)
    x0 = 0.6 * torch.randn(100, 2, dtype=torch.float64)
    torch.manual_seed(1)
    learned = learned_variance_elbo_terms(ORACLE, fraction, SCHEDULE, x0)
    torch.manual_seed(1)
    fixed = elbo_terms(ORACLE, SCHEDULE, x0, variance=variance)
    torch.testing.assert_close(learned.elbo, fixed.elbo)
    torch.testing.assert_close(learned.matching, fixed.matching)


def test_first_term_is_the_negative_log_likelihood() -> None:
    x0, noise = torch.randn(2, 50, 2, dtype=torch.float64)
    t = torch.zeros(50, dtype=torch.long)
    x = diffuse(SCHEDULE, x0, t, noise)
    term = bound_term(lambda _x, _t: noise, SCHEDULE, x0, t, noise, fraction=one)  # μ_θ = x_0
    nll = torch.log(2 * torch.pi * (1 - SCHEDULE.alpha[0]))  # two coordinates with ½ log(2πσ²) each
    torch.testing.assert_close(term, nll.expand(50))
    assert x.shape == x0.shape


def test_ancestral_samples_with_exact_variance_match_the_data_variance() -> None:
    torch.manual_seed(0)
    start = torch.randn(20_000, 2, dtype=torch.float64)
    exact = gaussian_reverse_variance(SCHEDULE, 0.6)
    low, high = posterior_variance(SCHEDULE)[1:].log(), forward_variance(SCHEDULE)[1:].log()
    fractions = torch.cat([torch.zeros(1).double(), (exact[1:].log() - low) / (high - low)])
    x = learned_variance_ddpm(ORACLE, lambda x, t: fractions[t][:, None].expand_as(x), SCHEDULE, start)
    narrow = ddpm(ORACLE, SCHEDULE, start)
    signal = 0.6**2 * SCHEDULE.alpha[0]
    ratio = signal / (signal + 1 - SCHEDULE.alpha[0])  # Var E[x_0|x_1] / Var x_0: the last step adds no noise
    torch.testing.assert_close(x.var(), 0.36 * ratio, atol=0.01, rtol=0)
    assert narrow.var() < 0.9 * x.var()


def test_hybrid_loss_is_the_simple_loss_plus_the_weighted_bound_term() -> None:
    torch.manual_seed(0)
    x0, noise = torch.randn(2, 30, 2, dtype=torch.float64)
    t = torch.randint(20, (30,))
    parts = simple_objective(ORACLE, SCHEDULE, x0, t, noise), bound_term(ORACLE, SCHEDULE, x0, t, noise, fraction=one)
    loss = hybrid_objective(one, weight=0.01)(ORACLE, SCHEDULE, x0, t, noise)
    torch.testing.assert_close(loss, parts[0] + 0.01 * 20 * parts[1])


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"weight must be positive; got weight=0\.0"):
        hybrid_objective(zero, weight=0.0)
    with pytest.raises(ValueError, match=r"errors must hold 20 values ≥ 0, one per step; got shape \(3,\)"):
        optimal_variance(SCHEDULE, torch.zeros(3))
    with pytest.raises(ValueError, match="errors must hold 20 values ≥ 0"):
        optimal_variance(SCHEDULE, -torch.ones(20))
