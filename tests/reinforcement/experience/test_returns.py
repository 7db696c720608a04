"""Discounted returns compared with their definition."""

import pytest
import torch

from parnassus.reinforcement.experience.returns import discounted_returns


def test_discounted_returns_match_the_definition() -> None:
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(12, 5, generator=generator, dtype=torch.float64)
    terminated, last_values = (
        torch.rand(12, 5, generator=generator) < 0.25,
        torch.randn(5, generator=generator, dtype=torch.float64),
    )
    returns = discounted_returns(rewards, terminated, gamma=0.8, last_values=last_values)
    for env in range(5):
        for t in range(12):
            total, power = 0.0, 1.0
            for k in range(t, 12):
                total += power * float(rewards[k, env])
                power *= 0.8
                if terminated[k, env]:
                    break
            else:
                total += power * float(last_values[env])
            assert float(returns[t, env]) == pytest.approx(total)


def test_undiscounted_returns_and_invalid_discount() -> None:
    rewards, not_terminated = torch.ones(4, 1), torch.zeros(4, 1, dtype=torch.bool)
    assert discounted_returns(rewards, not_terminated, gamma=1.0)[:, 0].tolist() == [4, 3, 2, 1]
    with pytest.raises(ValueError, match="must satisfy 0 ≤ γ ≤ 1"):
        discounted_returns(rewards, not_terminated, gamma=1.01)
