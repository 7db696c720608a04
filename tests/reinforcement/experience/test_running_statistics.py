"""Running moments are those of everything seen."""

import torch

from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser, RunningMeanStd, normalise_rewards


def test_batches_add_up() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 300, 3) * torch.tensor([1.0, 5.0, 0.1]) + torch.tensor([0.0, 3.0, -1.0])
    moments = RunningMeanStd(2, 3)
    for part in x.split([100, 1, 199], 1):
        moments.update(part)
    assert torch.allclose(moments.mean[:, 0], x.double().mean(1))
    assert torch.allclose(moments.variance[:, 0], x.double().var(1, unbiased=False))
    normal = moments(x)
    assert torch.allclose(normal.mean(1), torch.zeros(2, 3), atol=1e-5)
    assert torch.allclose(normal.std(1, unbiased=False), torch.ones(2, 3), atol=1e-3)
    assert float(moments(1e9 * x).abs().max()) == 10.0


def test_they_are_saved_with_the_model() -> None:
    moments, other = RunningMeanStd(1, 2), RunningMeanStd(1, 2)
    moments.update(torch.randn(1, 50, 2))
    other.load_state_dict(moments.state_dict())
    x = torch.randn(1, 4, 2)
    assert torch.equal(moments(x), other(x))


def test_rewards_are_scaled_by_the_spread_of_returns() -> None:
    torch.manual_seed(0)
    rewards, over = torch.randn(400, 2, 5) * torch.tensor([1.0, 100.0])[:, None], torch.rand(400, 2, 5) < 0.05
    scale = RewardNormaliser(2, 5, 0.9)
    parts = [scale.normalise(r, o) for r, o in zip(rewards.split(100), over.split(100), strict=True)]
    running, returns = torch.zeros(2, 5), []
    for reward, ended in zip(rewards, over, strict=True):
        running = 0.9 * running + reward
        returns.append(running)
        running = torch.where(ended, 0.0, running)
    spread = torch.stack(returns).transpose(0, 1).flatten(1).std(1, unbiased=False)
    assert torch.allclose(parts[-1][:, 0], rewards[300:, 0] / spread[0], rtol=1e-4)
    assert torch.allclose(parts[-1][:, 1], rewards[300:, 1] / spread[1], rtol=1e-4)


def test_an_episode_is_over_by_its_end_or_its_limit() -> None:
    torch.manual_seed(0)
    seen, rewards = torch.randn(60, 1, 2, 3), torch.randn(60, 1, 2)
    terminated, truncated = (torch.rand(60, 1, 2) < 0.1 for _ in range(2))
    actions = torch.zeros(60, 1, 2, dtype=torch.int64)
    experience = Experience(seen, actions, rewards, terminated, truncated, seen)
    assert normalise_rewards(None, experience) is experience
    scaled = normalise_rewards(RewardNormaliser(1, 2, 0.9), experience)
    torch.testing.assert_close(scaled.rewards, RewardNormaliser(1, 2, 0.9).normalise(rewards, terminated | truncated))
    assert scaled.observations is seen
    assert not torch.equal(scaled.rewards, RewardNormaliser(1, 2, 0.9).normalise(rewards, terminated))
