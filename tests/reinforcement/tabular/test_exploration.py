"""ε-greedy policies and processes with added exploration."""

import pytest
import torch

from parnassus.probability import standard_normal
from parnassus.reinforcement.tabular.exploration import add_exploration, epsilon_greedy_policy
from parnassus.reinforcement.textbook.cat import cat_decision_process


def test_policy_interpolates_between_greedy_and_uniform() -> None:
    q = standard_normal(7, 4)
    greedy, uniform = epsilon_greedy_policy(q, 0.0), epsilon_greedy_policy(q, 1.0)
    assert torch.equal(greedy.argmax(1), q.argmax(1))
    torch.testing.assert_close(greedy.amax(1), torch.ones(7, dtype=torch.float64))
    torch.testing.assert_close(uniform, torch.full((7, 4), 0.25, dtype=torch.float64))
    torch.testing.assert_close(epsilon_greedy_policy(q, 0.3), 0.7 * greedy + 0.3 * uniform)


def test_forbidden_actions_have_probability_zero() -> None:
    q, allowed = torch.tensor([[9.0, 1.0, 2.0]]), torch.tensor([[False, True, True]])
    torch.testing.assert_close(epsilon_greedy_policy(q, 0.5, allowed), torch.tensor([[0.0, 0.25, 0.75]]))


def test_added_exploration_matches_the_mixed_policy() -> None:
    process, epsilon = cat_decision_process(0.9), 0.3
    policy = process.greedy_policy(standard_normal(6, 3))
    mixed = (1 - epsilon) * policy + epsilon * process.uniform_policy()
    torch.testing.assert_close(add_exploration(process, epsilon).state_values(policy), process.state_values(mixed))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got epsilon=1\.2"):
        epsilon_greedy_policy(torch.zeros(1, 2), 1.2)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got epsilon=-0\.1"):
        add_exploration(cat_decision_process(), -0.1)
    with pytest.raises(ValueError, match="at least one allowed action"):
        epsilon_greedy_policy(torch.zeros(1, 2), 0.1, torch.zeros(1, 2, dtype=torch.bool))
