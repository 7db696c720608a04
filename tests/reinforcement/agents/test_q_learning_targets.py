"""Q-learning targets and their detached gradients."""

import pytest
import torch

from parnassus.reinforcement.agents.q_learning_targets import (
    double_q_targets,
    q_targets,
    squared_td_loss,
    values_of_actions,
)

REWARDS, TERMINATED = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([False, True, False])
TARGET_Q = torch.tensor([[1.0, 5.0], [9.0, 9.0], [-1.0, -4.0]])
ONLINE_Q = torch.tensor([[7.0, 2.0], [0.0, 1.0], [-3.0, 0.0]])


def test_q_targets_maximise_over_actions_and_stop_at_terminal_states() -> None:
    assert q_targets(REWARDS, TARGET_Q, TERMINATED, gamma=0.5).tolist() == [3.5, 2.0, 2.5]
    powers = torch.tensor([0.5, 0.5, 0.25])
    assert q_targets(REWARDS, TARGET_Q, TERMINATED, gamma=powers).tolist() == [3.5, 2.0, 2.75]


def test_double_q_targets_select_online_and_evaluate_with_the_target_network() -> None:
    assert double_q_targets(REWARDS, ONLINE_Q, TARGET_Q, TERMINATED, gamma=0.5).tolist() == [1.5, 2.0, 1.0]


def test_targets_have_no_gradient() -> None:
    q = ONLINE_Q.clone().requires_grad_()
    assert not q_targets(REWARDS, q, TERMINATED, gamma=0.9).requires_grad
    assert not double_q_targets(REWARDS, q, q, TERMINATED, gamma=0.9).requires_grad
    loss = squared_td_loss(values_of_actions(q, torch.tensor([0, 1, 1])), torch.tensor([8.0, 1.0, 3.0]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(10 / 6)
    torch.testing.assert_close(q.grad, torch.tensor([[-1.0, 0.0], [0.0, 0.0], [0.0, -3.0]]) / 3)
