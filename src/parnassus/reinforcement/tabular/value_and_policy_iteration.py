"""Dynamic programming: value, policy and modified policy iteration (book sec. 18.2).

Bellman's optimality operator (T v)(s) = max_a Q_v(s, a) is a contraction with factor γ in the maximum norm. So

    ‖v_k − v*‖ ≤ γ/(1 − γ) ‖v_k − v_{k−1}‖,   ‖V^{greedy} − v*‖ ≤ 2γ/(1 − γ) ‖v_k − v_{k−1}‖

which gives the stopping rule (Puterman 1994, sec. 6.3).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_at_least_one, check_non_negative
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess

MAX_SWEEPS = 100_000


@dataclass(frozen=True)
class PlanningResult:
    """Values, action values and the greedy policy; `bound` is an upper bound of the values' error, ∞ if unknown.

    >>> value_iteration(GridWorld("..G").process).policy.shape[1]
    4
    """

    values: Float[Tensor, " states"]
    q: Float[Tensor, "states actions"]
    policy: Float[Tensor, "states actions"]
    sweeps: int
    bound: float


def optimal_backup(
    process: MarkovDecisionProcess, values: Float[Tensor, "*batch states"]
) -> Float[Tensor, "*batch states"]:
    """(T v)(s) = max_a Σ_s' P(s, a, s') (r + γ v(s')); many v at once."""
    return process.q_values(values).amax(-1)


def value_iterates(process: MarkovDecisionProcess, sweeps: int) -> Float[Tensor, "{sweeps}+1 states"]:
    """v_0 = 0, v_{k+1} = T v_k, stacked: v_k is the optimal expected return of k steps."""
    check_non_negative(sweeps=sweeps)
    iterates = [torch.zeros(process.num_states, dtype=process.transition.dtype, device=process.transition.device)]
    for _ in range(sweeps):
        iterates.append(optimal_backup(process, iterates[-1]))
    return torch.stack(iterates)


def value_iteration(process: MarkovDecisionProcess, *, tolerance: float = 1e-8) -> PlanningResult:
    """Iterate v ← T v until the greedy policy is within `tolerance` of the optimum in every state.

    Without discount there is no such bound: it stops when no value changes by more than the tolerance in a sweep.
    """
    _check_tolerance(tolerance)
    gamma = process.gamma
    max_change = tolerance if gamma == 1 else tolerance * (1 - gamma) / (2 * max(gamma, 1e-300))
    values = value_iterates(process, 0)[0]
    for sweeps in range(1, MAX_SWEEPS + 1):
        previous, values = values, optimal_backup(process, values)
        change = float((values - previous).abs().max())
        if change <= max_change:
            return _plan(process, values, sweeps, _bound(gamma, change))
    raise ValueError(
        f"value iteration has not converged after {MAX_SWEEPS:,} sweeps; without discount the optimal policy must "
        f"reach a terminal state: got gamma={gamma}"
    )


def policy_iteration(
    process: MarkovDecisionProcess, policy: Float[Tensor, "states actions"] | None = None
) -> PlanningResult:
    """Alternate exact evaluation and greedy improvement until the policy is stable (Howard 1960).

    It starts from the uniform policy by default, and keeps an action unless another is better, which prevents cycles.
    """
    policy = process.uniform_policy() if policy is None else policy
    for sweeps in range(1, MAX_SWEEPS + 1):
        values = process.state_values(policy)
        q = process.q_values(values)
        better = q.amax(-1) > values + 1e-12 * (1 + values.abs())
        improved = torch.where(better[:, None], process.greedy_policy(q), policy)
        if not bool(better.any()):
            return _plan(process, values, sweeps, 0.0)
        policy = improved
    raise ValueError(f"policy iteration has not converged after {MAX_SWEEPS:,} policies")  # pragma: no cover


def modified_policy_iteration(
    process: MarkovDecisionProcess, evaluations: int, *, tolerance: float = 1e-8
) -> PlanningResult:
    """Policy iteration with m backups per policy instead of a solve: m = 1 is value iteration."""
    _check_tolerance(tolerance)
    check_at_least_one(evaluations=evaluations)
    if process.gamma == 1:
        raise ValueError("modified policy iteration needs a discount below 1; got gamma=1")
    max_change = tolerance * (1 - process.gamma) / (2 * max(process.gamma, 1e-300))
    values = value_iterates(process, 0)[0]
    for sweeps in range(1, MAX_SWEEPS + 1):
        q = process.q_values(values)
        change = float((q.amax(-1) - values).abs().max())
        if change <= max_change:
            return _plan(process, q.amax(-1), sweeps, _bound(process.gamma, change))
        chain = process.reward_process(process.greedy_policy(q))
        for _ in range(evaluations):
            values = chain.backup(values)
    raise ValueError(f"policy iteration has not converged after {MAX_SWEEPS:,} policies")  # pragma: no cover


def backward_induction(
    process: MarkovDecisionProcess, horizon: int
) -> tuple[Float[Tensor, "{horizon}+1 states"], Int[Tensor, "{horizon} states"]]:
    """Optimal values with 0, 1, …, H steps to go, and time-dependent optimal actions with 1, …, H."""
    values = value_iterates(process, horizon)
    return values, process.q_values(values[:-1]).argmax(-1)


def _plan(process: MarkovDecisionProcess, values: Tensor, sweeps: int, bound: float) -> PlanningResult:
    q = process.q_values(values)
    return PlanningResult(values, q, process.greedy_policy(q), sweeps, bound)


def _bound(gamma: float, change: float) -> float:
    return float("inf") if gamma == 1 else gamma / (1 - gamma) * change


def _check_tolerance(tolerance: float) -> None:
    if not tolerance > 0:
        raise ValueError(f"the tolerance must be positive; got tolerance={tolerance}")
