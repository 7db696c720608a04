"""Running means and variances of what is seen, by which observations and rewards are brought to one scale."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.reinforcement.collector import Experience

LARGEST = 10.0
"""Normalised numbers are cut off here: what was never seen before must not throw the network."""


class Moments(nn.Module):
    """Mean and variance of all numbers seen so far, for each learner and feature; x ↦ (x − mean)/√variance.

    Two batches become one by Chan's rule, with δ the difference of their means and n, m their counts:

        mean = mean + δ m/(n + m),   M₂ = M₂ + M₂' + δ² nm/(n + m)

    They are buffers, saved with the weights: who acts later must see as the learner saw.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, learners: int, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(learners, 1, features, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(learners, 1, features, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, x: Float[Tensor, "learners batch features"]) -> None:
        """Take these numbers in."""
        new, fresh = x.shape[1], x.double()
        mean, variance = fresh.mean(1, keepdim=True), fresh.var(1, keepdim=True, unbiased=False)
        total, off = self.count + new, mean - self.mean
        square = self.variance * self.count + variance * new + off.square() * self.count * new / total
        self.mean += off * new / total
        self.variance.copy_(square / total)
        self.count.copy_(total)

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch features"]:
        return self.scaled(x - self.mean.to(x))

    def scaled(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch features"]:
        """x/√variance, the mean left where it is: for rewards, whose sign must not change."""
        return (x * (self.variance + 1e-8).rsqrt().to(x)).clamp(-LARGEST, LARGEST)


class RewardScale(Moments):
    """Rewards divided by the deviation of the discounted return so far, so that one learning rate suits all tasks.

    G ← γ G + r in every copy, from 0 at the beginning of an episode; it is G whose variance is kept, not that of r.
    """

    running: Tensor

    def __init__(self, learners: int, copies: int, discount: float) -> None:
        super().__init__(learners, 1)
        self.discount = discount
        self.register_buffer("running", torch.zeros(learners, copies))

    @torch.no_grad()
    def rescaled(
        self, rewards: Float[Tensor, "steps learners copies"], over: Bool[Tensor, "steps learners copies"]
    ) -> Float[Tensor, "steps learners copies"]:
        """Take these rewards in, and give them back at their new scale."""
        returns = []
        for reward, ended in zip(rewards, over, strict=True):
            self.running = self.discount * self.running + reward
            returns.append(self.running)
            self.running = self.running.masked_fill(ended, 0.0)
        self.update(torch.cat(returns, 1).unsqueeze(-1))
        return (
            self.scaled(rewards.transpose(0, 1).flatten(1).unsqueeze(-1))
            .view(rewards.shape[1], rewards.shape[0], -1)
            .transpose(0, 1)
        )


def at_scale(scale: RewardScale | None, experience: Experience) -> Experience:
    """The same experience with its rewards taken in and rescaled; without a scale, as it came."""
    if scale is None:
        return experience
    over = experience.terminated | experience.truncated
    return replace(experience, rewards=scale.rescaled(experience.rewards, over))
