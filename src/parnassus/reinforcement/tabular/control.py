"""Tabular temporal-difference control: Q-learning, SARSA and expected SARSA (book sec. 18.3).

The three differ in the value of the next state, which is passed as a function. All are model-free: the process is used
only to sample rewards and next states.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.epsilon_greedy_learners import LearningRecord, TabularLearners


class NextStep(NamedTuple):
    """In the next state: Q(s', ·), the policy π(·|s') and the action sampled from it."""

    q: Float[Tensor, "learners actions"]
    policy: Float[Tensor, "learners actions"]
    action: Int[Tensor, " learners"]


NextValue: TypeAlias = Callable[[NextStep], Float[Tensor, " learners"]]
"""The value of the next state in the target."""


def q_learning_value(following: NextStep) -> Float[Tensor, " learners"]:
    """max_a Q(s', a): Q-learning, off-policy, which learns the optimal policy (book eq. 18.6)."""
    return following.q.amax(-1)


def sarsa_value(following: NextStep) -> Float[Tensor, " learners"]:
    """Q(s', a') of the action that will be taken: SARSA, on-policy."""
    return following.q.gather(-1, following.action[:, None])[:, 0]


def expected_sarsa_value(following: NextStep) -> Float[Tensor, " learners"]:
    """Σ_a π(a|s') Q(s', a): expected SARSA, without the sampling noise of a'."""
    return (following.policy * torch.where(following.policy > 0, following.q, 0)).sum(-1)


def td_control(learners: TabularLearners, next_value: NextValue) -> LearningRecord:
    """ε-greedy learning with an update after every step, episode after episode (book eq. 18.6).

        Q(s, a) ← Q(s, a) + α (r + γ next_value(s') − Q(s, a)),   next_value 0 at a terminal state

    Q is initialised to 0. The learners are independent.
    """
    q, visits, state = learners.zeros(), learners.zeros(), learners.starts[0]
    action = sample_categorical(learners.policy(learners.q_of_state(q, state), state), learners.generator)
    for step in range(learners.steps):
        reward, over, state_next = learners.step(step, state, action)
        q_next = learners.q_of_state(q, state_next)
        policy = learners.policy(q_next, state_next)
        action_next = sample_categorical(policy, learners.generator)
        ahead = next_value(NextStep(q_next, policy, action_next)).masked_fill(over, 0)
        learners.update(q, visits, (learners.row, state, action), reward + learners.process.discount * ahead)
        state, action = state_next, action_next
    return learners.record(q)
