"""ε-greedy tabular learners: starts, steps, updates and episode returns."""

import pytest
import torch

from parnassus.reinforcement.tabular.epsilon_greedy_learners import (
    LearningRecord,
    TabularLearners,
    sample_episode_starts,
)
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.textbook.cat import cat_decision_process


def test_episode_returns_split_at_episode_ends() -> None:
    rewards = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]], dtype=torch.float64)
    ended = torch.tensor([[False, True], [True, False], [False, False], [True, False]])
    record = LearningRecord(torch.zeros(2, 1, 1).double(), rewards, ended)
    expected = torch.tensor([[3.0, 12.0, torch.nan], [10.0, torch.nan, torch.nan]], dtype=torch.float64)
    torch.testing.assert_close(record.episode_returns(3), expected, equal_nan=True)
    torch.testing.assert_close(record.episode_returns(1), expected[:, :1])


def test_step_resets_after_a_terminal_state() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    learners = TabularLearners(process, start, steps=1, epsilon=0.0, step_size=constant_step_size(1.0), num_learners=3)
    relaxed, stroke, asleep = 3, 2, 5
    reward, terminated, state = learners.step(0, torch.full((3,), relaxed), torch.full((3,), stroke))
    assert reward.tolist() == [2, 2, 2]
    assert bool(terminated.all())
    assert state.tolist() == [1, 1, 1]
    assert learners.ended.tolist() == [[True] * 3]
    assert bool(process.terminal[asleep])


def test_invalid_arguments_raise_value_error() -> None:
    process, asleep = cat_decision_process(), torch.tensor([0.0, 0, 0, 0, 0, 1]).double()
    with pytest.raises(ValueError, match="probability 0 at terminal states"):
        sample_episode_starts(process, asleep, steps=1, num_learners=1)
    with pytest.raises(ValueError, match="got num_learners=0"):
        sample_episode_starts(process, asleep.flip(0), steps=1, num_learners=0)
    with pytest.raises(ValueError, match="probabilities must sum to one"):
        sample_episode_starts(process, asleep.flip(0) / 2, steps=1, num_learners=1)


def test_policy_is_epsilon_greedy_and_update_changes_visited_entries() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 0, 0, 1, 0, 0]).double()
    learners = TabularLearners(
        process, start, steps=1, epsilon=0.2, step_size=polynomial_step_size(1.0), num_learners=2
    )
    q, visits, relaxed = learners.zeros(), learners.zeros(), torch.tensor([3, 3])
    q[0, 3, 2] = 1.0
    policy = learners.policy(learners.q_of_state(q, relaxed), relaxed)
    torch.testing.assert_close(
        policy, torch.tensor([[0.0, 0.1, 0.9], [0.0, 0.5, 0.5]]).double()
    )  # waiting is not allowed
    entry = (learners.row, relaxed, torch.tensor([1, 2]))
    for target in (torch.tensor([3.0, 6.0]).double(), torch.tensor([5.0, 0.0]).double()):
        learners.update(q, visits, entry, target)
    assert q[entry].tolist() == [4.0, 3.0]  # α_n = 1/n: the mean of the targets
    assert visits.sum() == 4
    assert float(q[0, 3, 2]) == 1.0
