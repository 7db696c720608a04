"""Targets by hand; no gradient goes through them."""

import pytest
import torch

from parnassus.reinforcement.agents.q_learning_targets import (
    double_q_targets,
    half_squared_error,
    q_targets,
    values_of_actions,
)

REWARDS, ENDS = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([False, True, False])
HELD = torch.tensor([[1.0, 5.0], [9.0, 9.0], [-1.0, -4.0]])
ONLINE = torch.tensor([[7.0, 2.0], [0.0, 1.0], [-3.0, 0.0]])


def test_the_best_next_action_and_the_end() -> None:
    assert q_targets(REWARDS, HELD, ENDS, gamma=0.5).tolist() == [3.5, 2.0, 2.5]
    powers = torch.tensor([0.5, 0.5, 0.25])
    assert q_targets(REWARDS, HELD, ENDS, gamma=powers).tolist() == [3.5, 2.0, 2.75]


def test_one_chooses_and_the_other_judges() -> None:
    assert double_q_targets(REWARDS, ONLINE, HELD, ENDS, gamma=0.5).tolist() == [1.5, 2.0, 1.0]


def test_targets_are_held() -> None:
    q = ONLINE.clone().requires_grad_()
    assert not q_targets(REWARDS, q, ENDS, gamma=0.9).requires_grad
    assert not double_q_targets(REWARDS, q, q, ENDS, gamma=0.9).requires_grad
    loss = half_squared_error(values_of_actions(q, torch.tensor([0, 1, 1])), torch.tensor([8.0, 1.0, 3.0]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(10 / 6)
    torch.testing.assert_close(q.grad, torch.tensor([[-1.0, 0.0], [0.0, 0.0], [0.0, -3.0]]) / 3)
