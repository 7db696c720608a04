"""Planning compared with enumeration of all policies."""

from itertools import product

import pytest
import torch

from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.value_and_policy_iteration import (
    backward_induction,
    modified_policy_iteration,
    policy_iteration,
    value_iteration,
)


def random_process(gamma: float, seed: int = 0) -> MarkovDecisionProcess:
    generator = torch.Generator().manual_seed(seed)
    transition = torch.rand(4, 3, 4, generator=generator, dtype=torch.float64).square()
    return MarkovDecisionProcess(
        transition / transition.sum(-1, keepdim=True),
        torch.randn(4, 3, 4, generator=generator, dtype=torch.float64),
        gamma,
        torch.tensor([False, False, False, True]),
        torch.ones(4, 3, dtype=torch.bool),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, 1.0])
def test_plans_match_the_best_enumerated_policy(gamma: float, seed: int) -> None:
    process = random_process(gamma, seed)
    policies = torch.stack([torch.eye(3).double()[list(actions)] for actions in product(range(3), repeat=4)])
    optimal_values = process.state_values(policies).amax(0)
    plans = [value_iteration(process), policy_iteration(process)]
    plans += [modified_policy_iteration(process, 4)] if gamma < 1 else []
    for plan in plans:
        torch.testing.assert_close(plan.values, optimal_values, atol=1e-6, rtol=0)
        torch.testing.assert_close(process.state_values(plan.policy), optimal_values, atol=1e-6, rtol=0)
        torch.testing.assert_close(plan.q.amax(-1), optimal_values, atol=1e-6, rtol=0)


def test_error_bound_holds_and_shrinks_with_the_tolerance() -> None:
    process = random_process(0.9)
    exact = policy_iteration(process).values
    sweeps = []
    for tolerance in (1.0, 1e-3, 1e-6):
        plan = value_iteration(process, tolerance=tolerance)
        assert float((plan.values - exact).abs().max()) <= plan.bound <= tolerance / 2
        sweeps.append(plan.sweeps)
    assert sweeps == sorted(sweeps)


def test_modified_policy_iteration_with_one_evaluation_is_value_iteration() -> None:
    process = random_process(0.9)
    torch.testing.assert_close(modified_policy_iteration(process, 1).values, value_iteration(process).values)


def test_finite_horizon_policy_depends_on_the_remaining_steps() -> None:
    """A reward of 1 now or a reward of 3 after two steps."""
    transition = torch.zeros(3, 2, 3, dtype=torch.float64)
    transition[0, 0, 2] = transition[0, 1, 1] = transition[1, :, 2] = transition[2, :, 2] = 1
    reward = torch.zeros(3, 2, 3, dtype=torch.float64)
    reward[0, 0, 2], reward[1, :, 2] = 1.0, 3.0
    process = MarkovDecisionProcess(
        transition, reward, 1.0, torch.tensor([False, False, True]), torch.ones(3, 2, dtype=torch.bool)
    )
    values, actions = backward_induction(process, 2)
    assert actions[:, 0].tolist() == [0, 1]
    assert values[:, 0].tolist() == [0, 1, 3]


def test_invalid_arguments_raise_value_error() -> None:
    process = random_process(0.9)
    with pytest.raises(ValueError, match=r"the tolerance must be positive; got tolerance=0"):
        value_iteration(process, tolerance=0.0)
    with pytest.raises(ValueError, match="evaluations must be at least 1; got evaluations=0"):
        modified_policy_iteration(process, 0)
    with pytest.raises(ValueError, match="needs a discount below 1"):
        modified_policy_iteration(random_process(1.0), 3)
    with pytest.raises(ValueError, match="sweeps must not be negative"):
        backward_induction(process, -1)
