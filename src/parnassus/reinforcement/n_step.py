"""Learning from n rewards before trusting the table again: n-step SARSA and its kin (Sutton and Barto 2018, ch. 7)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.exploration import epsilon_greedy
from parnassus.reinforcement.step_sizes import StepSize
from parnassus.reinforcement.tabular import Ahead, Worth
from parnassus.reinforcement.walks import Learned, Walks


def learn_n_steps(
    process: MarkovDecisionProcess,
    worth: Worth,
    start: Float[Tensor, " states"],
    *,
    horizon: int,
    steps: int,
    epsilon: float,
    step_size: StepSize,
    learners: int = 1,
    generator: torch.Generator | None = None,
) -> Learned:
    """`learn` with targets of n = `horizon` rewards; n = 1 is `learn` itself.

        G_t = r_t + γ r_{t+1} + … + γ^{n−1} r_{t+n−1} + γ^n worth(s_{t+n}),   cut where the episode ends

    An entry is updated n steps after its visit. With `drawn_next` it is n-step SARSA; with `best_next` the first n
    actions are those taken, not the best, and what is learned lies between the two policies.
    """
    if horizon < 1:
        raise ValueError(f"a target needs at least one reward; got horizon={horizon}")
    walks = Walks(process, start, steps=steps, learners=learners, generator=generator)
    row, q, visits, state = walks.row, walks.table(), walks.table(), walks.starts[0]
    action = draw(epsilon_greedy(walks.looked_up(q, state), epsilon, process.allowed[state]), generator)
    seen: list[tuple[Tensor, Tensor]] = []
    for step in range(steps):
        seen.append((state, action))
        _, _, state = walks.step(step, state, action)
        q_next = walks.looked_up(q, state)
        policy = epsilon_greedy(q_next, epsilon, process.allowed[state])
        action = draw(policy, generator)
        if len(seen) < horizon:
            continue
        target = worth(Ahead(q_next, policy, action))
        for back in range(step, step - horizon, -1):
            target = walks.rewards[back] + process.discount * target.masked_fill(walks.ended[back], 0)
        entry = (row, *seen.pop(0))
        visits[entry] += 1
        q[entry] += step_size(visits[entry]) * (target - q[entry])
    return walks.learned(q)
