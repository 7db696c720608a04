"""Walks start where they may, remember what they were paid, and cut it into episodes."""

import pytest
import torch

from parnassus.reinforcement.tabular.epsilon_greedy_learners import (
    LearningRecord,
    TabularLearners,
    sample_episode_starts,
)
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.textbook.cat import cat_decision_process


def test_returns_are_cut_at_the_ends() -> None:
    rewards = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]], dtype=torch.float64)
    ended = torch.tensor([[False, True], [True, False], [False, False], [True, False]])
    learned = LearningRecord(torch.zeros(2, 1, 1).double(), rewards, ended)
    expected = torch.tensor([[3.0, 12.0, torch.nan], [10.0, torch.nan, torch.nan]], dtype=torch.float64)
    torch.testing.assert_close(learned.episode_returns(3), expected, equal_nan=True)
    torch.testing.assert_close(learned.episode_returns(1), expected[:, :1])


def test_an_end_leads_to_a_start() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    walks = TabularLearners(process, start, steps=1, epsilon=0.0, step_size=constant_step_size(1.0), num_learners=3)
    relaxed, stroke, asleep = 3, 2, 5
    reward, over, state = walks.step(0, torch.full((3,), relaxed), torch.full((3,), stroke))
    assert reward.tolist() == [2, 2, 2]
    assert bool(over.all())
    assert state.tolist() == [1, 1, 1]
    assert walks.ended.tolist() == [[True] * 3]
    assert bool(process.terminal[asleep])


def test_what_cannot_work_gets_a_sentence() -> None:
    process, asleep = cat_decision_process(), torch.tensor([0.0, 0, 0, 0, 0, 1]).double()
    with pytest.raises(ValueError, match="probability 0 at terminal states"):
        sample_episode_starts(process, asleep, steps=1, num_learners=1)
    with pytest.raises(ValueError, match="got num_learners=0"):
        sample_episode_starts(process, asleep.flip(0), steps=1, num_learners=0)
    with pytest.raises(ValueError, match="probabilities must sum to one"):
        sample_episode_starts(process, asleep.flip(0) / 2, steps=1, num_learners=1)


def test_learners_act_greedily_but_for_epsilon_and_nudge_what_they_visit() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 0, 0, 1, 0, 0]).double()
    walks = TabularLearners(process, start, steps=1, epsilon=0.2, step_size=polynomial_step_size(1.0), num_learners=2)
    q, visits, relaxed = walks.zeros(), walks.zeros(), torch.tensor([3, 3])
    q[0, 3, 2] = 1.0
    policy = walks.policy(walks.q_of_state(q, relaxed), relaxed)
    torch.testing.assert_close(policy, torch.tensor([[0.0, 0.1, 0.9], [0.0, 0.5, 0.5]]).double())  # one cannot wait
    entry = (walks.row, relaxed, torch.tensor([1, 2]))
    for target in (torch.tensor([3.0, 6.0]).double(), torch.tensor([5.0, 0.0]).double()):
        walks.update(q, visits, entry, target)
    assert q[entry].tolist() == [4.0, 3.0]  # α_n = 1/n: the mean of what was seen
    assert visits.sum() == 4
    assert float(q[0, 3, 2]) == 1.0
