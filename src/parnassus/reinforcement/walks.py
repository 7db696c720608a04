"""Many learners walking through one process, each with a table, a state and chance of its own."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.probability.simplex import require_distribution
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.exploration import epsilon_greedy
from parnassus.reinforcement.step_sizes import StepSize


@dataclass(frozen=True)
class Learned:
    """The tables of all learners, and what each step paid and whether it ended an episode."""

    q: Float[Tensor, "learners states actions"]
    rewards: Float[Tensor, "steps learners"]
    ended: Bool[Tensor, "steps learners"]

    def episode_returns(self, episodes: int) -> Float[Tensor, "learners {episodes}"]:
        """The sum of rewards of the first episodes; NaN where a learner has not come to their end."""
        number = self.ended.long().cumsum(0) - self.ended.long()  # to which episode a step belongs
        finished = self.ended.sum(0)
        total = self.rewards.new_zeros(episodes + 1, self.rewards.shape[1])
        total.scatter_add_(0, number.clamp(max=episodes), self.rewards)
        known = torch.arange(episodes, device=total.device)[:, None] < finished
        return torch.where(known, total[:episodes], torch.nan).T


def episode_starts(
    process: MarkovDecisionProcess,
    start: Float[Tensor, " states"],
    *,
    steps: int,
    learners: int,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "{steps}+1 {learners}"]:
    """Where an episode of each learner would begin, before and after every step."""
    if steps < 1 or learners < 1:
        raise ValueError(f"need at least one step and one learner; got steps={steps}, learners={learners}")
    require_distribution(start, "start")
    if bool((start[process.terminal] > 0).any()):
        raise ValueError("an episode must not start at a terminal state")
    return draw(start.expand((steps + 1) * learners, -1), generator).view(steps + 1, learners)


class Walks:
    """How learners of tables go, ε-greedily, where they start again, and a record of what happened to them.

    One walk serves one learning: it holds the chance of its own steps, and is used up by them.
    """

    def __init__(
        self,
        process: MarkovDecisionProcess,
        start: Float[Tensor, " states"],
        *,
        steps: int,
        epsilon: float,
        step_size: StepSize,
        learners: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        self.process, self.steps, self.learners, self.generator = process, steps, learners, generator
        self.epsilon, self.step_size = epsilon, step_size
        self.row = torch.arange(learners, device=start.device)
        self.starts = episode_starts(process, start, steps=steps, learners=learners, generator=generator)
        self.rewards = torch.zeros(steps, learners, dtype=start.dtype, device=start.device)
        self.ended = torch.zeros(steps, learners, dtype=torch.bool, device=start.device)

    def table(self) -> Float[Tensor, "learners states actions"]:
        """Zeros: for what is not allowed too, which is never looked at."""
        return self.rewards.new_zeros(self.learners, self.process.states, self.process.actions)

    def step(
        self, step: int, state: Int[Tensor, " learners"], action: Int[Tensor, " learners"]
    ) -> tuple[Float[Tensor, " learners"], Bool[Tensor, " learners"], Int[Tensor, " learners"]]:
        """Reward, whether the episode is over, and the next state: that of a new episode where it is."""
        reward, following = self.process.step(state, action, generator=self.generator)
        over = self.process.terminal[following]
        self.rewards[step], self.ended[step] = reward, over
        return reward, over, torch.where(over, self.starts[step + 1], following)

    def looked_up(
        self, q: Float[Tensor, "learners states actions"], state: Int[Tensor, " learners"]
    ) -> Float[Tensor, "learners actions"]:
        """Q(s, ·) of each learner's state; −∞ for actions that are not there."""
        return q[self.row, state].masked_fill(~self.process.allowed[state], -torch.inf)

    def policy(
        self, values: Float[Tensor, "learners actions"], state: Int[Tensor, " learners"]
    ) -> Float[Tensor, "learners actions"]:
        """The law by which each learner acts in its state: ε-greedy in what it looked up there."""
        return epsilon_greedy(values, self.epsilon, self.process.allowed[state])

    def nudge(
        self, q: Tensor, visits: Tensor, entry: tuple[Int[Tensor, " learners"], ...], target: Float[Tensor, " learners"]
    ) -> None:
        """Q ← Q + α (target − Q) at one entry of each learner, α by how often it was visited."""
        visits[entry] += 1
        q[entry] += self.step_size(visits[entry]) * (target - q[entry])

    def learned(self, q: Float[Tensor, "learners states actions"]) -> Learned:
        return Learned(q, self.rewards, self.ended)
