"""Generalised advantages against a plain loop over episodes; ends and cuts are told apart."""

import pytest
import torch

from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages, td_errors
from parnassus.reinforcement.experience.returns import discounted_returns


def rollout() -> tuple[torch.Tensor, ...]:
    source = torch.Generator().manual_seed(0)
    rewards, values, next_values = torch.randn(3, 15, 4, generator=source, dtype=torch.float64)
    chance = torch.rand(15, 4, generator=source)
    return rewards, values, next_values, chance < 0.15, (chance >= 0.15) & (chance < 0.3)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.7, 1.0])
def test_the_definition(gae_lambda: float) -> None:
    rewards, values, next_values, terminated, truncated = rollout()
    found = generalised_advantages(
        rewards, values, next_values, terminated, truncated, gamma=0.9, gae_lambda=gae_lambda
    )
    for env in range(4):
        for t in range(15):
            total = 0.0
            for k in range(t, 15):
                ahead = 0.0 if terminated[k, env] else 0.9 * float(next_values[k, env])
                total += (0.9 * gae_lambda) ** (k - t) * (float(rewards[k, env]) + ahead - float(values[k, env]))
                if terminated[k, env] or truncated[k, env]:
                    break
            assert float(found[t, env]) == pytest.approx(total)


def test_the_whole_way_is_the_return_less_the_value() -> None:
    rewards, values, _, terminated, _ = rollout()
    shifted = torch.cat([values[1:], torch.zeros(1, 4).double()])  # v(s_{t+1}) of the same walk
    none = torch.zeros_like(terminated)
    found = generalised_advantages(rewards, values, shifted, terminated, none, gamma=0.9, gae_lambda=1.0)
    torch.testing.assert_close(found, discounted_returns(rewards, terminated, gamma=0.9) - values)


def test_a_cut_counts_what_would_come_and_an_end_does_not() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    yes, no = torch.tensor([[True]]), torch.tensor([[False]])
    ended = generalised_advantages(one, 0 * one, 10 * one, yes, no, gamma=0.9, gae_lambda=0.5)
    cut = generalised_advantages(one, 0 * one, 10 * one, no, yes, gamma=0.9, gae_lambda=0.5)
    assert float(ended) == 1
    assert float(cut) == 10
    assert float(td_errors(one, one, 10 * one, no, gamma=0.5)) == 5


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got 1\.5"):
        generalised_advantages(*rollout(), gamma=0.9, gae_lambda=1.5)
    with pytest.raises(ValueError, match="0 ≤ γ ≤ 1; got 2"):
        generalised_advantages(*rollout(), gamma=2.0, gae_lambda=0.5)
