"""Double Q-learning: one table chooses, the other judges, so that luck is not taken for worth (van Hasselt 2010)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.exploration import epsilon_greedy
from parnassus.reinforcement.step_sizes import StepSize
from parnassus.reinforcement.walks import Learned, Walks


def double_q_learning(
    process: MarkovDecisionProcess,
    start: Float[Tensor, " states"],
    *,
    steps: int,
    epsilon: float,
    step_size: StepSize,
    learners: int = 1,
    generator: torch.Generator | None = None,
) -> Learned:
    """Two tables, of which a coin picks the one to learn; the learned q is their mean.

        Q₁(s, a) ← Q₁(s, a) + α (r + γ Q₂(s', argmax_a Q₁(s', a)) − Q₁(s, a)), or the same with 1 and 2 exchanged

    max_a Q(s', a) of one noisy table is too high on average: E max ≥ max E. What another table says of the action
    that looked best is not. Both act together, ε-greedily in Q₁ + Q₂.
    """
    walks = Walks(process, start, steps=steps, learners=learners, generator=generator)
    row, state = walks.row, walks.starts[0]
    q = torch.stack([walks.table(), walks.table()])
    visits = torch.zeros_like(q)
    coins = draw(q.new_full((steps * learners, 2), 0.5), generator).view(steps, learners)
    for step, coin in enumerate(coins):
        policy = epsilon_greedy(walks.looked_up(q.mean(0), state), epsilon, process.allowed[state])
        action = draw(policy, generator)
        reward, over, following = walks.step(step, state, action)
        chooser = q[coin, row, following].masked_fill(~process.allowed[following], -torch.inf)
        ahead = q[1 - coin, row, following, chooser.argmax(-1)].masked_fill(over, 0)
        entry = (coin, row, state, action)
        visits[entry] += 1
        q[entry] += step_size(visits[entry]) * (reward + process.discount * ahead - q[entry])
        state = following
    return walks.learned(q.mean(0))
