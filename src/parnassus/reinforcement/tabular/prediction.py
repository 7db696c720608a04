"""Value prediction from sampled paths: Monte Carlo and TD(λ) (book sec. 18.2).

Both are model-free: the transition matrix is used only to sample next states. A new path starts where one has ended.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_at_least_one
from parnassus.reinforcement.experience.generalised_advantage import check_lambda
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess
from parnassus.reinforcement.tabular.step_sizes import StepSize


def monte_carlo_values(
    process: MarkovRewardProcess, num_paths: int, *, steps: int, generator: torch.Generator | None = None
) -> tuple[Float[Tensor, " states"], Float[Tensor, " states"]]:
    """Mean discounted return of `num_paths` sampled paths from each state, and its standard error.

    Paths are truncated after `steps`; the neglected remainder is at most γ^steps times the largest value.
    """
    if num_paths < 2:
        raise ValueError(f"a standard error needs at least two paths; got num_paths={num_paths}")
    states = len(process.reward)
    current = torch.arange(states, device=process.reward.device).repeat_interleave(num_paths)
    total = torch.zeros(states * num_paths, dtype=process.reward.dtype, device=process.reward.device)
    for step in range(steps):
        total += process.gamma**step * process.reward[current]
        current = sample_categorical(process.transition[current], generator)
    returns = total.view(states, num_paths)
    return returns.mean(1), returns.std(1) / num_paths**0.5


def td_lambda(
    process: MarkovRewardProcess,
    start: Float[Tensor, " states"],
    *,
    steps: int,
    step_size: StepSize,
    trace_decay: float = 0.0,
    num_learners: int = 1,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "{num_learners} states"]:
    """TD(λ) with accumulating traces for independent learners, from V = 0 (Sutton 1988).

        δ_t = r_t + γ V(s_{t+1}) − V(s_t)
        e ← γλ e,  e(s_t) ← e(s_t) + 1,   V ← V + α δ_t e

    `trace_decay` is λ: 0 bootstraps from the next state, 1 uses the rewards up to the end.
    """
    check_lambda(trace_decay)
    check_at_least_one(steps=steps, num_learners=num_learners)
    row = torch.arange(num_learners, device=start.device)
    values = torch.zeros(num_learners, len(start), dtype=process.reward.dtype, device=start.device)
    trace, visits, terminal = torch.zeros_like(values), torch.zeros_like(values), process.terminal
    starts = sample_categorical(start.expand((steps + 1) * num_learners, -1), generator).view(steps + 1, num_learners)
    state = starts[0]
    for step in range(steps):
        next_state = sample_categorical(process.transition[state], generator)
        delta = process.reward[state] + process.gamma * values[row, next_state] - values[row, state]
        trace *= process.gamma * trace_decay
        trace[row, state] += 1
        visits[row, state] += 1
        values += (step_size(visits[row, state]) * delta)[:, None] * trace
        terminated = terminal[next_state]
        trace[terminated] = 0
        state = torch.where(terminated, starts[step + 1], next_state)
    return values
