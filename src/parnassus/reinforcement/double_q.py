"""Double Q-learning: one table chooses, the other judges, so that luck is not taken for worth (van Hasselt 2010)."""

import torch

from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.walks import Learned, Walks


def double_q_learning(walks: Walks) -> Learned:
    """Two tables, of which a coin picks the one to learn; the learned q is their mean.

        Q₁(s, a) ← Q₁(s, a) + α (r + γ Q₂(s', argmax_a Q₁(s', a)) − Q₁(s, a)), or the same with 1 and 2 exchanged

    max_a Q(s', a) of one noisy table is too high on average: E max ≥ max E. What another table says of the action
    that looked best is not. Both act together, ε-greedily in Q₁ + Q₂.
    """
    process, row, state = walks.process, walks.row, walks.starts[0]
    q = torch.stack([walks.table(), walks.table()])
    visits = torch.zeros_like(q)
    coins = draw(q.new_full((walks.rewards.numel(), 2), 0.5), walks.generator).view_as(walks.rewards)
    for step, coin in enumerate(coins):
        action = draw(walks.policy(walks.looked_up(q.mean(0), state), state), walks.generator)
        reward, over, following = walks.step(step, state, action)
        chooser = q[coin, row, following].masked_fill(~process.allowed[following], -torch.inf)
        ahead = q[1 - coin, row, following, chooser.argmax(-1)].masked_fill(over, 0)
        walks.nudge(q, visits, (coin, row, state, action), reward + process.discount * ahead)
        state = following
    return walks.learned(q.mean(0))
