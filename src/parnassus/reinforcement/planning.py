"""Planning with a known process: value iteration, policy iteration and what lies between (book sec. 18.2).

Bellman's operator (T v)(s) = max_a Q_v(s, a) draws any two v together by the factor γ in the largest difference. So

    ‖v_k − v*‖ ≤ γ/(1 − γ) ‖v_k − v_{k−1}‖,   ‖V^{greedy} − v*‖ ≤ 2γ/(1 − γ) ‖v_k − v_{k−1}‖

which is the rule by which iteration stops (Puterman 1994, sec. 6.3).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.markov_reward import require_count

MOST_SWEEPS = 100_000


@dataclass(frozen=True)
class Plan:
    """Values, action values and a greedy policy; `bound` is how far the values may be from the best, ∞ if unknown."""

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
    """v_0 = 0, v_{k+1} = T v_k, one below the other: v_k is the best that k steps can pay."""
    require_count("sweeps", sweeps)
    path = [torch.zeros(process.states, dtype=process.transition.dtype, device=process.transition.device)]
    for _ in range(sweeps):
        path.append(optimal_backup(process, path[-1]))
    return torch.stack(path)


def value_iteration(process: MarkovDecisionProcess, *, tolerance: float = 1e-8) -> Plan:
    """Back up until the greedy policy is worth at most `tolerance` less than the best, in every state.

    Without discount there is no such bound: it stops where a sweep changes nothing by more than the tolerance.
    """
    _require_tolerance(tolerance)
    discount = process.discount
    enough = tolerance if discount == 1 else tolerance * (1 - discount) / (2 * max(discount, 1e-300))
    values = value_iterates(process, 0)[0]
    for sweeps in range(1, MOST_SWEEPS + 1):
        before, values = values, optimal_backup(process, values)
        change = float((values - before).abs().max())
        if change <= enough:
            return _plan(process, values, sweeps, _bound(discount, change))
    raise ValueError(
        f"value iteration has not settled after {MOST_SWEEPS:,} sweeps; without discount the best policy must come "
        f"to an end: got discount={discount}"
    )


def policy_iteration(process: MarkovDecisionProcess, policy: Float[Tensor, "states actions"] | None = None) -> Plan:
    """Evaluate exactly, take the greedy policy, until it no longer changes (Howard 1960).

    It starts from the uniform policy and keeps an action unless another is better, so that it cannot go in circles.
    """
    policy = process.uniform_policy() if policy is None else policy
    for sweeps in range(1, MOST_SWEEPS + 1):
        values = process.values_of(policy)
        q = process.q_values(values)
        better = q.amax(-1) > values + 1e-12 * (1 + values.abs())
        improved = torch.where(better[:, None], process.greedy(q), policy)
        if not bool(better.any()):
            return _plan(process, values, sweeps, 0.0)
        policy = improved
    raise ValueError(f"policy iteration has not settled after {MOST_SWEEPS:,} policies")  # pragma: no cover


def modified_policy_iteration(process: MarkovDecisionProcess, evaluations: int, *, tolerance: float = 1e-8) -> Plan:
    """Greedy policy, then m backups under it instead of a solve: m = 1 is value iteration, m → ∞ policy iteration."""
    _require_tolerance(tolerance)
    if evaluations < 1:
        raise ValueError(f"a policy must be evaluated by at least one backup; got evaluations={evaluations}")
    if process.discount == 1:
        raise ValueError("modified policy iteration needs a discount below 1; got discount=1")
    enough = tolerance * (1 - process.discount) / (2 * max(process.discount, 1e-300))
    values = value_iterates(process, 0)[0]
    for sweeps in range(1, MOST_SWEEPS + 1):
        q = process.q_values(values)
        change = float((q.amax(-1) - values).abs().max())
        if change <= enough:
            return _plan(process, q.amax(-1), sweeps, _bound(process.discount, change))
        followed = process.under(process.greedy(q))
        for _ in range(evaluations):
            values = followed.backup(values)
    raise ValueError(f"policy iteration has not settled after {MOST_SWEEPS:,} policies")  # pragma: no cover


def finite_horizon(
    process: MarkovDecisionProcess, horizon: int
) -> tuple[Float[Tensor, "{horizon}+1 states"], Int[Tensor, "{horizon} states"]]:
    """The best values with 0, 1, …, H steps to go, and the best action with 1, …, H to go: it may change with time."""
    values = value_iterates(process, horizon)
    return values, process.q_values(values[:-1]).argmax(-1)


def _plan(process: MarkovDecisionProcess, values: Tensor, sweeps: int, bound: float) -> Plan:
    q = process.q_values(values)
    return Plan(values, q, process.greedy(q), sweeps, bound)


def _bound(discount: float, change: float) -> float:
    return float("inf") if discount == 1 else discount / (1 - discount) * change


def _require_tolerance(tolerance: float) -> None:
    if not tolerance > 0:
        raise ValueError(f"the tolerance must be positive; got tolerance={tolerance}")
