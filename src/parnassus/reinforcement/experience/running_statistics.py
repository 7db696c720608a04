"""Running means and variances, for the normalisation of observations and rewards."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.reinforcement.experience.collector import Experience

MAX_NORMALISED = 10.0
"""Normalised values are clipped to ± this, so that outliers do not destabilise the network."""


class RunningMeanStd(nn.Module):
    """Running mean and variance per learner and feature; x ↦ (x − mean)/√variance.

    Batches are combined by Chan's rule, with δ the difference of their means and n, m their counts:

        mean = mean + δ m/(n + m),   M₂ = M₂ + M₂' + δ² nm/(n + m)

    The statistics are buffers, saved with the weights, so that a trained policy sees inputs as in training.

    >>> RunningMeanStd(num_learners=1, features=4)(torch.zeros(1, 5, 4)).shape
    torch.Size([1, 5, 4])
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, num_learners: int, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(num_learners, 1, features, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(num_learners, 1, features, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, x: Float[Tensor, "learners batch features"]) -> None:
        """Include a batch in the statistics."""
        new, batch = x.shape[1], x.double()
        mean, variance = batch.mean(1, keepdim=True), batch.var(1, keepdim=True, unbiased=False)
        total, delta = self.count + new, mean - self.mean
        square = self.variance * self.count + variance * new + delta.square() * self.count * new / total
        self.mean += delta * new / total
        self.variance.copy_(square / total)
        self.count.copy_(total)

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch features"]:
        return self.scale(x - self.mean.to(x))

    def scale(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch features"]:
        """x/√variance without centring: for rewards, whose sign must not change."""
        return (x * (self.variance + 1e-8).rsqrt().to(x)).clamp(-MAX_NORMALISED, MAX_NORMALISED)


class RewardNormaliser(RunningMeanStd):
    """Rewards divided by the standard deviation of the running discounted return, as in VecNormalize.

    G ← γ G + r in every environment, from 0 at the beginning of an episode; the variance is that of G, not of r.

    >>> RewardNormaliser(num_learners=1, n_envs=8, gamma=0.99).gamma
    0.99
    """

    running: Tensor

    def __init__(self, num_learners: int, n_envs: int, gamma: float) -> None:
        super().__init__(num_learners, 1)
        self.gamma = gamma
        self.register_buffer("running", torch.zeros(num_learners, n_envs))

    @torch.no_grad()
    def normalise(
        self, rewards: Float[Tensor, "steps learners envs"], ended: Bool[Tensor, "steps learners envs"]
    ) -> Float[Tensor, "steps learners envs"]:
        """Include these rewards in the statistics and return them scaled."""
        returns = []
        for reward, over in zip(rewards, ended, strict=True):
            self.running = self.gamma * self.running + reward
            returns.append(self.running)
            self.running = self.running.masked_fill(over, 0.0)
        self.update(torch.cat(returns, 1).unsqueeze(-1))
        return (
            self.scale(rewards.transpose(0, 1).flatten(1).unsqueeze(-1))
            .view(rewards.shape[1], rewards.shape[0], -1)
            .transpose(0, 1)
        )


def normalise_rewards(normaliser: RewardNormaliser | None, experience: Experience) -> Experience:
    """The experience with its rewards normalised; unchanged without a normaliser."""
    if normaliser is None:
        return experience
    ended = experience.terminated | experience.truncated
    return replace(experience, rewards=normaliser.normalise(experience.rewards, ended))
