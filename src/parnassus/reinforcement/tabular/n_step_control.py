"""n-step temporal-difference control (Sutton and Barto 2018, ch. 7)."""

from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.control import NextStep, NextValue
from parnassus.reinforcement.tabular.epsilon_greedy_learners import LearningRecord, TabularLearners


def n_step_td_control(learners: TabularLearners, next_value: NextValue, *, n_steps: int) -> LearningRecord:
    """`td_control` with n-step targets; n = 1 is `td_control` itself.

        G_t = r_t + γ r_{t+1} + … + γ^{n−1} r_{t+n−1} + γ^n next_value(s_{t+n}),   truncated where the episode ends

    An entry is updated n steps after its visit. `sarsa_value` gives n-step SARSA. With `q_learning_value` the first n
    actions are those of the ε-greedy policy, so that the result lies between the on-policy and the optimal values.
    """
    check_at_least_one(n_steps=n_steps)
    q, visits, state = learners.zeros(), learners.zeros(), learners.starts[0]
    action = sample_categorical(learners.policy(learners.q_of_state(q, state), state), learners.generator)
    pending: list[tuple[Tensor, Tensor]] = []
    for step in range(learners.steps):
        pending.append((state, action))
        _, _, state = learners.step(step, state, action)
        q_next = learners.q_of_state(q, state)
        policy = learners.policy(q_next, state)
        action = sample_categorical(policy, learners.generator)
        if len(pending) < n_steps:
            continue
        target = next_value(NextStep(q_next, policy, action))
        for past in range(step, step - n_steps, -1):
            target = learners.rewards[past] + learners.process.gamma * target.masked_fill(learners.ended[past], 0)
        learners.update(q, visits, (learners.row, *pending.pop(0)), target)
    return learners.record(q)
