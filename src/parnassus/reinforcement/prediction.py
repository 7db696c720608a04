"""Values of a reward process from paths alone: sampled returns and temporal differences (book sec. 18.2).

Both learn from walks that start anew at an end; neither looks at the transition matrix but to draw the next state.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.markov_reward import MarkovRewardProcess
from parnassus.reinforcement.step_sizes import StepSize


def sampled_values(
    process: MarkovRewardProcess, count: int, *, steps: int, generator: torch.Generator | None = None
) -> tuple[Float[Tensor, " states"], Float[Tensor, " states"]]:
    """Mean discounted return of `count` walks from each state, and its standard error (Monte Carlo).

    A walk is cut after `steps`; what comes later is left out, at most γ^steps of what there is.
    """
    if count < 2:
        raise ValueError(f"a mean with its error needs at least two walks; got count={count}")
    states = len(process.reward)
    walks = torch.arange(states, device=process.reward.device).repeat_interleave(count)
    total = torch.zeros(states * count, dtype=process.reward.dtype, device=process.reward.device)
    for step in range(steps):
        total += process.discount**step * process.reward[walks]
        walks = draw(process.transition[walks], generator)
    returns = total.view(states, count)
    return returns.mean(1), returns.std(1) / count**0.5


def temporal_differences(
    process: MarkovRewardProcess,
    start: Float[Tensor, " states"],
    *,
    steps: int,
    step_size: StepSize,
    decay: float = 0.0,
    learners: int = 1,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "{learners} states"]:
    """TD(λ) with accumulating traces, `learners` walks at once, from V = 0 (Sutton 1988).

        δ_t = r_t + γ V(s_{t+1}) − V(s_t)
        e ← γλ e,  e(s_t) ← e(s_t) + 1,   V ← V + α δ_t e

    `decay` is λ: 0 learns from the next state alone, 1 from the whole way to the end.
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"the decay of the trace must satisfy 0 ≤ λ ≤ 1; got decay={decay}")
    if steps < 1 or learners < 1:
        raise ValueError(f"need at least one step and one learner; got steps={steps}, learners={learners}")
    row = torch.arange(learners, device=start.device)
    values = torch.zeros(learners, len(start), dtype=process.reward.dtype, device=start.device)
    trace, visits = torch.zeros_like(values), torch.zeros_like(values)
    ends = process.ends
    starts = draw(start.expand((steps + 1) * learners, -1), generator).view(steps + 1, learners)
    now = starts[0]
    for step in range(steps):
        following = draw(process.transition[now], generator)
        delta = process.reward[now] + process.discount * values[row, following] - values[row, now]
        trace *= process.discount * decay
        trace[row, now] += 1
        visits[row, now] += 1
        values += (step_size(visits[row, now]) * delta)[:, None] * trace
        over = ends[following]
        trace[over] = 0
        now = torch.where(over, starts[step + 1], following)
    return values
