"""Q-learning with a simulator that may be asked anything: every entry of the table at once (book eq. 18.6).

A walk sees rare states rarely. Where any state can be set up at will, a draw of each next state updates the whole
table, and the errors that are left are those of the rule itself (Even-Dar and Mansour 2003).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.step_sizes import StepSize


def sweeping_q_learning(
    process: MarkovDecisionProcess,
    *,
    sweeps: int,
    step_size: StepSize,
    learners: int = 1,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "{learners} states actions"]:
    """Q ← Q + α_n (r(s, a, s') + γ max_b Q(s', b) − Q) for all s and a, with one s' drawn for each.

    It begins at 0 and stays there at a terminal state; what is not allowed ends at −∞.
    """
    if sweeps < 1 or learners < 1:
        raise ValueError(f"need at least one sweep and one learner; got sweeps={sweeps}, learners={learners}")
    pairs = process.states * process.actions
    laws = process.transition.reshape(1, pairs, process.states).expand(learners, -1, -1).reshape(-1, process.states)
    pays = process.reward.reshape(pairs, process.states)
    column = torch.arange(pairs, device=laws.device)
    q = process.masked(laws.new_zeros(learners, process.states, process.actions))
    for sweep in range(1, sweeps + 1):
        following = draw(laws, generator).view(learners, pairs)
        target = pays[column, following] + process.discount * q.amax(-1).gather(1, following)
        rate = step_size(target.new_full((1,), float(sweep)))
        q = process.masked(q.lerp(target.view_as(q), rate))
    return q
