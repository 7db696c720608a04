"""Running mean and variance of observations and rewards."""

import torch

from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.running_statistics import RewardNormaliser, RunningMeanStd, normalise_rewards


def test_running_moments_match_moments_of_all_batches() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 300, 3) * torch.tensor([1.0, 5.0, 0.1]) + torch.tensor([0.0, 3.0, -1.0])
    moments = RunningMeanStd(2, 3)
    for chunk in x.split([100, 1, 199], 1):
        moments.update(chunk)
    assert torch.allclose(moments.mean[:, 0], x.double().mean(1))
    assert torch.allclose(moments.variance[:, 0], x.double().var(1, unbiased=False))
    normalised = moments(x)
    assert torch.allclose(normalised.mean(1), torch.zeros(2, 3), atol=1e-5)
    assert torch.allclose(normalised.std(1, unbiased=False), torch.ones(2, 3), atol=1e-3)
    assert float(moments(1e9 * x).abs().max()) == 10.0


def test_state_dict_round_trip() -> None:
    statistics, restored = RunningMeanStd(1, 2), RunningMeanStd(1, 2)
    statistics.update(torch.randn(1, 50, 2))
    restored.load_state_dict(statistics.state_dict())
    x = torch.randn(1, 4, 2)
    assert torch.equal(statistics(x), restored(x))


def test_rewards_are_divided_by_the_standard_deviation_of_returns() -> None:
    torch.manual_seed(0)
    rewards, done = torch.randn(400, 2, 5) * torch.tensor([1.0, 100.0])[:, None], torch.rand(400, 2, 5) < 0.05
    normaliser = RewardNormaliser(2, 5, 0.9)
    chunks = [normaliser.normalise(r, o) for r, o in zip(rewards.split(100), done.split(100), strict=True)]
    running, returns = torch.zeros(2, 5), []
    for reward, is_done in zip(rewards, done, strict=True):
        running = 0.9 * running + reward
        returns.append(running)
        running = torch.where(is_done, 0.0, running)
    std = torch.stack(returns).transpose(0, 1).flatten(1).std(1, unbiased=False)
    assert torch.allclose(chunks[-1][:, 0], rewards[300:, 0] / std[0], rtol=1e-4)
    assert torch.allclose(chunks[-1][:, 1], rewards[300:, 1] / std[1], rtol=1e-4)


def test_reward_normalisation_resets_on_termination_and_truncation() -> None:
    torch.manual_seed(0)
    observations, rewards = torch.randn(60, 1, 2, 3), torch.randn(60, 1, 2)
    terminated, truncated = (torch.rand(60, 1, 2) < 0.1 for _ in range(2))
    actions = torch.zeros(60, 1, 2, dtype=torch.int64)
    experience = Experience(observations, actions, rewards, terminated, truncated, observations)
    assert normalise_rewards(None, experience) is experience
    scaled = normalise_rewards(RewardNormaliser(1, 2, 0.9), experience)
    torch.testing.assert_close(scaled.rewards, RewardNormaliser(1, 2, 0.9).normalise(rewards, terminated | truncated))
    assert scaled.observations is observations
    assert not torch.equal(scaled.rewards, RewardNormaliser(1, 2, 0.9).normalise(rewards, terminated))
