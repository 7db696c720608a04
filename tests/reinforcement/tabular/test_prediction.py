"""Monte Carlo and TD(λ) prediction."""

import pytest
import torch

from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess
from parnassus.reinforcement.tabular.prediction import monte_carlo_values, td_lambda
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.textbook.cat import cat_reward_process

CORRIDOR = MarkovRewardProcess(
    torch.tensor([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]], dtype=torch.float64),
    torch.tensor([1.0, 2.0, 4.0, 0.0], dtype=torch.float64),
    0.5,
)
"""Three states in a row, then a terminal state; deterministic."""
START = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)


def test_monte_carlo_values_agree_with_exact_values() -> None:
    values, error = monte_carlo_values(
        cat_reward_process(), 2_000, steps=120, generator=torch.Generator().manual_seed(0)
    )
    difference = (values - cat_reward_process().values()).abs()
    assert bool((difference[:-1] <= 4 * error[:-1]).all())
    assert float(values[-1]) == 0
    assert float(error[0]) > 0.1
    exact, exact_error = monte_carlo_values(CORRIDOR, 2, steps=5)
    torch.testing.assert_close(exact, CORRIDOR.values())
    assert exact_error.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("decay", [0.0, 0.4, 1.0])
def test_td_lambda_matches_a_loop(decay: float) -> None:
    """Two episodes of a deterministic corridor."""
    values, trace = [0.0] * 4, [0.0] * 4
    for _ in range(2):
        trace = [0.0] * 4
        for s in range(3):
            delta = float(CORRIDOR.reward[s]) + 0.5 * values[s + 1] - values[s]
            trace = [0.5 * decay * e for e in trace]
            trace[s] += 1
            values = [v + 0.3 * delta * e for v, e in zip(values, trace, strict=True)]
    actual = td_lambda(CORRIDOR, START, steps=6, step_size=constant_step_size(0.3), trace_decay=decay, num_learners=2)
    torch.testing.assert_close(actual, torch.tensor([values, values], dtype=torch.float64))


def test_td_with_lambda_one_needs_one_deterministic_episode() -> None:
    """With step size 1/n a single deterministic episode gives the values."""
    values = td_lambda(CORRIDOR, START, steps=3, step_size=polynomial_step_size(1.0), trace_decay=1.0)
    torch.testing.assert_close(values[0], CORRIDOR.values())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least two paths; got num_paths=1"):
        monte_carlo_values(CORRIDOR, 1, steps=3)
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got 1\.1"):
        td_lambda(CORRIDOR, START, steps=3, step_size=constant_step_size(0.3), trace_decay=1.1)
    with pytest.raises(ValueError, match="got steps=0"):
        td_lambda(CORRIDOR, START, steps=0, step_size=constant_step_size(0.3))
