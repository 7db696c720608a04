"""Learning action values in a table, from experience alone: Q-learning, SARSA and expected SARSA (book sec. 18.3).

They differ in what they take the next state to be worth, which is passed as a function. None looks at the process but
to be told rewards and next states.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.walks import Learned, Walks


class Ahead(NamedTuple):
    """What a learner knows of the next state: Q(s', ·), the law π(·|s') of its next action, the one drawn from it."""

    q: Float[Tensor, "learners actions"]
    policy: Float[Tensor, "learners actions"]
    action: Int[Tensor, " learners"]


Worth: TypeAlias = Callable[[Ahead], Float[Tensor, " learners"]]
"""What a learner takes the next state to be worth."""


def best_next(ahead: Ahead) -> Float[Tensor, " learners"]:
    """max_a Q(s', a): Q-learning, which learns the best policy while another acts (book eq. 18.6)."""
    return ahead.q.amax(-1)


def drawn_next(ahead: Ahead) -> Float[Tensor, " learners"]:
    """Q(s', a') for the action that will be taken: SARSA, which learns the policy that acts."""
    return ahead.q.gather(-1, ahead.action[:, None])[:, 0]


def expected_next(ahead: Ahead) -> Float[Tensor, " learners"]:
    """Σ_a π(a|s') Q(s', a): expected SARSA, SARSA without the chance of a'."""
    return (ahead.policy * torch.where(ahead.policy > 0, ahead.q, 0)).sum(-1)


def learn(walks: Walks, worth: Worth) -> Learned:
    """ε-greedy walks that nudge the table after every step, episodes one after the other (book eq. 18.6).

        Q(s, a) ← Q(s, a) + α (r + γ worth(s') − Q(s, a)),   worth 0 at a terminal state

    The table begins at 0. Its learners are independent.
    """
    q, visits, state = walks.table(), walks.table(), walks.starts[0]
    action = draw(walks.policy(walks.looked_up(q, state), state), walks.generator)
    for step in range(walks.steps):
        reward, over, state_next = walks.step(step, state, action)
        q_next = walks.looked_up(q, state_next)
        policy = walks.policy(q_next, state_next)
        action_next = draw(policy, walks.generator)
        ahead = worth(Ahead(q_next, policy, action_next)).masked_fill(over, 0)
        walks.nudge(q, visits, (walks.row, state, action), reward + walks.process.discount * ahead)
        state, action = state_next, action_next
    return walks.learned(q)
