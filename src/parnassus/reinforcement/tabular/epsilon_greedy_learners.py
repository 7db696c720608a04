"""Independent ε-greedy learners on one Markov decision process, each with its own table."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.exploration import epsilon_greedy_policy
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.step_sizes import StepSize


@dataclass(frozen=True)
class LearningRecord:
    """The learned tables, and for every step its reward and whether the episode ended.

    >>> record = LearningRecord(torch.zeros(2, 6, 4), torch.ones(100, 2), torch.zeros(100, 2, dtype=torch.bool))
    >>> record.q.shape
    torch.Size([2, 6, 4])
    """

    q: Float[Tensor, "learners states actions"]
    rewards: Float[Tensor, "steps learners"]
    ended: Bool[Tensor, "steps learners"]

    def episode_returns(self, episodes: int) -> Float[Tensor, "learners {episodes}"]:
        """Undiscounted returns of the first episodes; NaN where a learner has not completed them."""
        episode = self.ended.long().cumsum(0) - self.ended.long()  # the episode that a step belongs to
        completed = self.ended.sum(0)
        total = self.rewards.new_zeros(episodes + 1, self.rewards.shape[1])
        total.scatter_add_(0, episode.clamp(max=episodes), self.rewards)
        is_complete = torch.arange(episodes, device=total.device)[:, None] < completed
        return torch.where(is_complete, total[:episodes], torch.nan).T


def sample_episode_starts(
    process: MarkovDecisionProcess,
    start: Float[Tensor, " states"],
    *,
    steps: int,
    num_learners: int,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "{steps}+1 {num_learners}"]:
    """The state in which each learner would start an episode, before and after every step."""
    check_at_least_one(steps=steps, num_learners=num_learners)
    check_distribution(start, "start")
    if bool((start[process.terminal] > 0).any()):
        raise ValueError("start must have probability 0 at terminal states")
    return sample_categorical(start.expand((steps + 1) * num_learners, -1), generator).view(steps + 1, num_learners)


class TabularLearners:
    """ε-greedy interaction of independent learners with a process, and a record of their rewards.

    An object serves one call of a learning algorithm: it holds that call's initial states and record.

    >>> process = GridWorld("..G").process
    >>> start = torch.zeros_like(process.reward[:, 0, 0])
    >>> start[0] = 1
    >>> learners = TabularLearners(process, start, steps=100, epsilon=0.1, step_size=constant_step_size(0.5))
    >>> td_control(learners, q_learning_value).q.shape[0]
    1
    """

    def __init__(
        self,
        process: MarkovDecisionProcess,
        start: Float[Tensor, " states"],
        *,
        steps: int,
        epsilon: float,
        step_size: StepSize,
        num_learners: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        self.process, self.steps, self.num_learners, self.generator = process, steps, num_learners, generator
        self.epsilon, self.step_size = epsilon, step_size
        self.row = torch.arange(num_learners, device=start.device)
        self.starts = sample_episode_starts(process, start, steps=steps, num_learners=num_learners, generator=generator)
        self.rewards = torch.zeros(steps, num_learners, dtype=start.dtype, device=start.device)
        self.ended = torch.zeros(steps, num_learners, dtype=torch.bool, device=start.device)

    def zeros(self) -> Float[Tensor, "learners states actions"]:
        """A table of zeros per learner; entries of actions that are not allowed are never read."""
        return self.rewards.new_zeros(self.num_learners, self.process.num_states, self.process.num_actions)

    def step(
        self, step: int, state: Int[Tensor, " learners"], action: Int[Tensor, " learners"]
    ) -> tuple[Float[Tensor, " learners"], Bool[Tensor, " learners"], Int[Tensor, " learners"]]:
        """Reward, whether the episode ended, and the next state, which starts a new episode where it did."""
        reward, next_state = self.process.step(state, action, generator=self.generator)
        terminated = self.process.terminal[next_state]
        self.rewards[step], self.ended[step] = reward, terminated
        return reward, terminated, torch.where(terminated, self.starts[step + 1], next_state)

    def q_of_state(
        self, q: Float[Tensor, "learners states actions"], state: Int[Tensor, " learners"]
    ) -> Float[Tensor, "learners actions"]:
        """Q(s, ·) of each learner's state; −∞ for actions that are not allowed."""
        return q[self.row, state].masked_fill(~self.process.allowed[state], -torch.inf)

    def policy(
        self, q: Float[Tensor, "learners actions"], state: Int[Tensor, " learners"]
    ) -> Float[Tensor, "learners actions"]:
        """Action probabilities of each learner in its state: ε-greedy in Q(s, ·)."""
        return epsilon_greedy_policy(q, self.epsilon, self.process.allowed[state])

    def update(
        self, q: Tensor, visits: Tensor, entry: tuple[Int[Tensor, " learners"], ...], target: Float[Tensor, " learners"]
    ) -> None:
        """Q ← Q + α (target − Q) at one entry per learner, with α by its number of visits."""
        visits[entry] += 1
        q[entry] += self.step_size(visits[entry]) * (target - q[entry])

    def record(self, q: Float[Tensor, "learners states actions"]) -> LearningRecord:
        """The result: the tables with the recorded rewards and ends of episodes."""
        return LearningRecord(q, self.rewards, self.ended)
