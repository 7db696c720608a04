"""Variances of the way back: ends of the scale, agreement with the plain bound, refusals."""

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


def test_the_share_runs_from_one_variance_to_the_other() -> None:
    t, share = torch.arange(20), torch.zeros(20, 1, dtype=torch.float64)
    low, high = (interpolated_log_variance(SCHEDULE, t, share + s).exp()[:, 0] for s in (0, 1))
    torch.testing.assert_close(low[1:], posterior_variance(SCHEDULE)[1:])
    torch.testing.assert_close(high, forward_variance(SCHEDULE))
    assert low[0] == low[1]
    middle = interpolated_log_variance(SCHEDULE, t, share + 0.5).exp()[:, 0]
    torch.testing.assert_close(middle, (low * high).sqrt())


@pytest.mark.parametrize(("share", "variance"), [(zero, posterior_variance), (one, forward_variance)])
def test_the_bound_at_the_ends_is_the_plain_bound(share: object, variance: object) -> None:
    assert callable(share)
    assert callable(variance)
    x0 = 0.6 * torch.randn(100, 2, dtype=torch.float64)
    torch.manual_seed(1)
    learned = learned_variance_elbo_terms(ORACLE, share, SCHEDULE, x0)
    torch.manual_seed(1)
    plain = elbo_terms(ORACLE, SCHEDULE, x0, variance=variance)
    torch.testing.assert_close(learned.nats, plain.nats)
    torch.testing.assert_close(learned.matching, plain.matching)


def test_the_first_step_costs_the_surprise_of_the_data() -> None:
    x0, noise = torch.randn(2, 50, 2, dtype=torch.float64)
    t = torch.zeros(50, dtype=torch.long)
    x = diffuse(SCHEDULE, x0, t, noise)
    cost = bound_term(lambda _x, _t: noise, SCHEDULE, x0, t, noise, fraction=one)  # the exact noise: the mean is x_0
    surprise = torch.log(2 * torch.pi * (1 - SCHEDULE.alpha[0]))  # two coordinates, half a logarithm each
    torch.testing.assert_close(cost, surprise.expand(50))
    assert x.shape == x0.shape


def test_ancestral_samples_with_the_exact_variance_have_the_spread_of_the_data() -> None:
    torch.manual_seed(0)
    start = torch.randn(20_000, 2, dtype=torch.float64)
    exact = gaussian_reverse_variance(SCHEDULE, 0.6)
    low, high = posterior_variance(SCHEDULE)[1:].log(), forward_variance(SCHEDULE)[1:].log()
    shares = torch.cat([torch.zeros(1).double(), (exact[1:].log() - low) / (high - low)])
    x = learned_variance_ddpm(ORACLE, lambda x, t: shares[t][:, None].expand_as(x), SCHEDULE, start)
    narrow = ddpm(ORACLE, SCHEDULE, start)
    kept = (
        0.6**2 / (0.6**2 * SCHEDULE.alpha[0] + 1 - SCHEDULE.alpha[0]) * SCHEDULE.alpha[0]
    )  # E[x_0|x_1] lacks the rest
    torch.testing.assert_close(x.var(), 0.36 * kept, atol=0.01, rtol=0)
    assert narrow.var() < 0.9 * x.var()


def test_the_hybrid_loss_is_the_simple_one_and_a_part_of_the_bound() -> None:
    torch.manual_seed(0)
    x0, noise = torch.randn(2, 30, 2, dtype=torch.float64)
    t = torch.randint(20, (30,))
    parts = simple_objective(ORACLE, SCHEDULE, x0, t, noise), bound_term(ORACLE, SCHEDULE, x0, t, noise, fraction=one)
    found = hybrid_objective(one, weight=0.01)(ORACLE, SCHEDULE, x0, t, noise)
    torch.testing.assert_close(found, parts[0] + 0.01 * 20 * parts[1])


def test_wrong_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"weight must be positive; got weight=0\.0"):
        hybrid_objective(zero, weight=0.0)
    with pytest.raises(ValueError, match=r"errors must hold 20 values ≥ 0, one per step; got shape \(3,\)"):
        optimal_variance(SCHEDULE, torch.zeros(3))
    with pytest.raises(ValueError, match="errors must hold 20 values ≥ 0"):
        optimal_variance(SCHEDULE, -torch.ones(20))
