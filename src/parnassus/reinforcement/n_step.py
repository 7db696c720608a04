"""Learning from n rewards before trusting the table again: n-step SARSA and its kin (Sutton and Barto 2018, ch. 7)."""

from torch import Tensor

from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.tabular import Ahead, Worth
from parnassus.reinforcement.walks import Learned, Walks


def learn_n_steps(walks: Walks, worth: Worth, *, horizon: int) -> Learned:
    """`learn` with targets of n = `horizon` rewards; n = 1 is `learn` itself.

        G_t = r_t + γ r_{t+1} + … + γ^{n−1} r_{t+n−1} + γ^n worth(s_{t+n}),   cut where the episode ends

    An entry is updated n steps after its visit. With `drawn_next` it is n-step SARSA; with `best_next` the first n
    actions are those taken, not the best, and what is learned lies between the two policies.
    """
    if horizon < 1:
        raise ValueError(f"a target needs at least one reward; got horizon={horizon}")
    q, visits, state = walks.table(), walks.table(), walks.starts[0]
    action = draw(walks.policy(walks.looked_up(q, state), state), walks.generator)
    seen: list[tuple[Tensor, Tensor]] = []
    for step in range(walks.steps):
        seen.append((state, action))
        _, _, state = walks.step(step, state, action)
        q_next = walks.looked_up(q, state)
        policy = walks.policy(q_next, state)
        action = draw(policy, walks.generator)
        if len(seen) < horizon:
            continue
        target = worth(Ahead(q_next, policy, action))
        for back in range(step, step - horizon, -1):
            target = walks.rewards[back] + walks.process.discount * target.masked_fill(walks.ended[back], 0)
        walks.nudge(q, visits, (walks.row, *seen.pop(0)), target)
    return walks.learned(q)
