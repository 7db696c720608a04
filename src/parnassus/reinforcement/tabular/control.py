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
    """Q(s', ·), the policy π(·|s') and the action a' sampled from it, in the next state.

    >>> NextStep(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.1, 0.9]]), torch.tensor([1])).action.item()
    1
    """

    q: Float[Tensor, "learners actions"]
    policy: Float[Tensor, "learners actions"]
    action: Int[Tensor, " learners"]


NextValue: TypeAlias = Callable[[NextStep], Float[Tensor, " learners"]]
"""The value of the next state in the target."""


def q_learning_value(next_step: NextStep) -> Float[Tensor, " learners"]:
    """max_a Q(s', a): Q-learning, off-policy, which learns the optimal policy (book eq. 18.6)."""
    return next_step.q.amax(-1)


def sarsa_value(next_step: NextStep) -> Float[Tensor, " learners"]:
    """Q(s', a') of the action that will be taken: SARSA, on-policy."""
    return next_step.q.gather(-1, next_step.action[:, None])[:, 0]


def expected_sarsa_value(next_step: NextStep) -> Float[Tensor, " learners"]:
    """Σ_a π(a|s') Q(s', a): expected SARSA, without the variance of sampling a'."""
    return (next_step.policy * torch.where(next_step.policy > 0, next_step.q, 0)).sum(-1)


def td_control(learners: TabularLearners, next_value: NextValue) -> LearningRecord:
    """One-step temporal-difference control with ε-greedy learners (book eq. 18.6).

        Q(s, a) ← Q(s, a) + α (r + γ next_value(s') − Q(s, a)),   next_value 0 at a terminal state

    Q is initialised to 0. The learners are independent.
    """
    q, visits, state = learners.zeros(), learners.zeros(), learners.starts[0]
    action = sample_categorical(learners.policy(learners.q_of_state(q, state), state), learners.generator)
    for step in range(learners.steps):
        reward, terminated, next_state = learners.step(step, state, action)
        q_next = learners.q_of_state(q, next_state)
        policy = learners.policy(q_next, next_state)
        next_action = sample_categorical(policy, learners.generator)
        value = next_value(NextStep(q_next, policy, next_action)).masked_fill(terminated, 0)
        learners.update(q, visits, (learners.row, state, action), reward + learners.process.gamma * value)
        state, action = next_state, next_action
    return learners.record(q)
