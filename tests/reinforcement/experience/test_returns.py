"""Returns against their definition, written as a double loop."""

import pytest
import torch

from parnassus.reinforcement.experience.returns import discounted_returns


def test_the_definition() -> None:
    source = torch.Generator().manual_seed(0)
    rewards = torch.randn(12, 5, generator=source, dtype=torch.float64)
    ended, after = torch.rand(12, 5, generator=source) < 0.25, torch.randn(5, generator=source, dtype=torch.float64)
    returns = discounted_returns(rewards, ended, gamma=0.8, last_values=after)
    for env in range(5):
        for t in range(12):
            total, power = 0.0, 1.0
            for k in range(t, 12):
                total += power * float(rewards[k, env])
                power *= 0.8
                if ended[k, env]:
                    break
            else:
                total += power * float(after[env])
            assert float(returns[t, env]) == pytest.approx(total)


def test_nothing_comes_after_and_the_discount_may_be_one() -> None:
    rewards, going_on = torch.ones(4, 1), torch.zeros(4, 1, dtype=torch.bool)
    assert discounted_returns(rewards, going_on, gamma=1.0)[:, 0].tolist() == [4, 3, 2, 1]
    with pytest.raises(ValueError, match="must satisfy 0 ≤ γ ≤ 1"):
        discounted_returns(rewards, going_on, gamma=1.01)
