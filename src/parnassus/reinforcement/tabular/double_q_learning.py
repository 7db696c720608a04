"""Double Q-learning: select with one table, evaluate with the other (van Hasselt 2010)."""

import torch

from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.epsilon_greedy_learners import LearningRecord, TabularLearners


def double_q_learning(learners: TabularLearners) -> LearningRecord:
    """Two tables, one of which is updated at random at every step; the result is their mean.

        Q₁(s, a) ← Q₁(s, a) + α (r + γ Q₂(s', argmax_a Q₁(s', a)) − Q₁(s, a)), or with 1 and 2 exchanged

    max_a Q(s', a) of one noisy table is biased upwards: E max ≥ max E. The other table's value of the selected action
    is not. The policy is ε-greedy in Q₁ + Q₂.
    """
    process, row, state = learners.process, learners.row, learners.starts[0]
    q = torch.stack([learners.zeros(), learners.zeros()])
    visits = torch.zeros_like(q)
    tables = sample_categorical(q.new_full((learners.rewards.numel(), 2), 0.5), learners.generator)
    for step, table in enumerate(tables.view_as(learners.rewards)):
        policy = learners.policy(learners.q_of_state(q.mean(0), state), state)
        action = sample_categorical(policy, learners.generator)
        reward, terminated, next_state = learners.step(step, state, action)
        q_next = q[table, row, next_state].masked_fill(~process.allowed[next_state], -torch.inf)
        next_value = q[1 - table, row, next_state, q_next.argmax(-1)].masked_fill(terminated, 0)
        learners.update(q, visits, (table, row, state, action), reward + process.gamma * next_value)
        state = next_state
    return learners.record(q.mean(0))
