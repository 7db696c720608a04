"""Generalised advantage estimation compared with a loop over episodes."""

import pytest
import torch

from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages, td_errors
from parnassus.reinforcement.experience.returns import discounted_returns


def random_rollout() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    rewards, values, next_values = torch.randn(3, 15, 4, generator=generator, dtype=torch.float64)
    uniform_samples = torch.rand(15, 4, generator=generator)
    return rewards, values, next_values, uniform_samples < 0.15, (uniform_samples >= 0.15) & (uniform_samples < 0.3)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.7, 1.0])
def test_advantages_match_the_definition(gae_lambda: float) -> None:
    rewards, values, next_values, terminated, truncated = random_rollout()
    advantages = generalised_advantages(
        rewards, values, next_values, terminated, truncated, gamma=0.9, gae_lambda=gae_lambda
    )
    for env in range(4):
        for t in range(15):
            total = 0.0
            for k in range(t, 15):
                next_value = 0.0 if terminated[k, env] else 0.9 * float(next_values[k, env])
                total += (0.9 * gae_lambda) ** (k - t) * (float(rewards[k, env]) + next_value - float(values[k, env]))
                if terminated[k, env] or truncated[k, env]:
                    break
            assert float(advantages[t, env]) == pytest.approx(total)


def test_advantage_with_lambda_one_is_return_minus_value() -> None:
    rewards, values, _, terminated, _ = random_rollout()
    shifted = torch.cat([values[1:], torch.zeros(1, 4).double()])  # v(s_{t+1}) of the same trajectory
    not_truncated = torch.zeros_like(terminated)
    advantages = generalised_advantages(rewards, values, shifted, terminated, not_truncated, gamma=0.9, gae_lambda=1.0)
    torch.testing.assert_close(advantages, discounted_returns(rewards, terminated, gamma=0.9) - values)


def test_truncation_bootstraps_and_termination_does_not() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    true, false = torch.tensor([[True]]), torch.tensor([[False]])
    terminated = generalised_advantages(one, 0 * one, 10 * one, true, false, gamma=0.9, gae_lambda=0.5)
    truncated = generalised_advantages(one, 0 * one, 10 * one, false, true, gamma=0.9, gae_lambda=0.5)
    assert float(terminated) == 1
    assert float(truncated) == 10
    assert float(td_errors(one, one, 10 * one, false, gamma=0.5)) == 5


def test_invalid_discounts_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got 1\.5"):
        generalised_advantages(*random_rollout(), gamma=0.9, gae_lambda=1.5)
    with pytest.raises(ValueError, match="0 ≤ γ ≤ 1; got 2"):
        generalised_advantages(*random_rollout(), gamma=2.0, gae_lambda=0.5)
