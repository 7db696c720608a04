"""Synchronous Q-learning with a generative model: sweeps over all entries (book eq. 18.6).

A trajectory visits some states rarely. With a generative model one next state is sampled per entry, every entry is
updated equally often, and the remaining errors are those of the update rule itself (Even-Dar and Mansour 2003).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.step_sizes import StepSize


def synchronous_q_learning(
    process: MarkovDecisionProcess,
    *,
    sweeps: int,
    step_size: StepSize,
    num_learners: int = 1,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "{num_learners} states actions"]:
    """Q ← Q + α_n (r(s, a, s') + γ max_b Q(s', b) − Q) for all s and a, with one s' sampled for each.

    Q is initialised to 0 and stays 0 at terminal states; actions that are not allowed have −∞.
    """
    check_at_least_one(sweeps=sweeps, num_learners=num_learners)
    pairs = process.num_states * process.num_actions
    transition = process.transition.reshape(1, pairs, process.num_states).expand(num_learners, -1, -1)
    transition = transition.reshape(-1, process.num_states)
    rewards = process.reward.reshape(pairs, process.num_states)
    column = torch.arange(pairs, device=transition.device)
    q = process.mask_q_values(transition.new_zeros(num_learners, process.num_states, process.num_actions))
    for sweep in range(1, sweeps + 1):
        next_state = sample_categorical(transition, generator).view(num_learners, pairs)
        target = rewards[column, next_state] + process.gamma * q.amax(-1).gather(1, next_state)
        alpha = step_size(target.new_full((1,), float(sweep)))
        q = process.mask_q_values(q.lerp(target.view_as(q), alpha))
    return q
