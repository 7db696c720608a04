"""Replay buffer: storage, eviction, sampling and restoring."""

import pytest
import torch

from parnassus.reinforcement.experience.replay_buffer import ReplayBuffer
from parnassus.reinforcement.experience.transitions import Transitions

from ..numbered_transitions import numbered_transitions


def sample_transitions(buffer: ReplayBuffer, rows: int = 4_000) -> Transitions:
    (batch,) = buffer.sample(rows, 1)
    return batch.transitions


def test_sampled_columns_belong_to_the_same_row() -> None:
    buffer = ReplayBuffer(3, capacity=50, num_learners=2)
    buffer.add(numbered_transitions(0, 20))
    transitions = sample_transitions(buffer, 200)
    numbers = transitions.rewards
    assert torch.equal(transitions.observations, numbers[..., None].expand(-1, -1, 3))
    assert torch.equal(transitions.next_observations, -numbers[..., None].expand(-1, -1, 3))
    assert torch.equal(transitions.actions, numbers.long() % 5)
    assert torch.equal(transitions.terminated, numbers % 2 == 1)
    torch.testing.assert_close(transitions.discounts, numbers / 100)


def test_oldest_rows_are_overwritten() -> None:
    buffer = ReplayBuffer(3, capacity=10, num_learners=2)
    for first in range(0, 21, 7):
        buffer.add(numbered_transitions(first, 7))
    assert len(buffer) == 10
    assert sorted(set(sample_transitions(buffer).rewards[0].tolist())) == list(range(11, 21))
    buffer.add(numbered_transitions(100, 35))
    assert sorted(set(sample_transitions(buffer).rewards[1].tolist())) == list(range(125, 135))


def test_sampling_is_uniform_and_independent_per_learner() -> None:
    torch.manual_seed(0)
    buffer = ReplayBuffer(3, capacity=10, num_learners=2)
    buffer.add(numbered_transitions(0, 10))
    transitions = sample_transitions(buffer, 20_000)
    counts = torch.bincount(transitions.rewards[0].long(), minlength=10).double()
    assert float(((counts - 2_000).square() / 2_000).sum()) < 27.9  # χ² with 9 degrees: p > 0.001
    assert not torch.equal(transitions.rewards[0], transitions.rewards[1])


def test_batches_split_samples_in_order() -> None:
    buffer = ReplayBuffer(3, capacity=50, num_learners=2)
    buffer.add(numbered_transitions(0, 50))
    samples = list(buffer.sample(400, 5))
    assert [sample.indices.shape[1] for sample in samples] == [800, 800, 400]  # chunks that fit into the cache
    batches = [batch for sample in samples for batch in sample.batches(400)]
    assert len(batches) == 5
    for batch in batches:
        assert batch.transitions.observations.shape == (2, 400, 3)
        assert torch.equal(batch.transitions.rewards, batch.indices.float())
        assert torch.equal(batch.transitions.terminated, batch.indices % 2 == 1)
    weighted = samples[0]._replace(weights=samples[0].transitions.rewards)
    for batch in weighted.batches(400):
        assert batch.weights is not None
        assert torch.equal(batch.weights, batch.transitions.rewards)


def test_state_dict_round_trip() -> None:
    buffer, restored = (ReplayBuffer(3, capacity=10, num_learners=2) for _ in range(2))
    for first in (0, 7):
        buffer.add(numbered_transitions(first, 7))
    restored.load_state_dict(buffer.state_dict())
    for b in (buffer, restored):
        b.add(numbered_transitions(14, 5))
    assert torch.equal(buffer.table, restored.table)
    with pytest.raises(ValueError, match="must fit this one"):
        ReplayBuffer(4, capacity=10, num_learners=2).load_state_dict(buffer.state_dict())


def test_empty_buffer_and_zero_capacity_raise_value_error() -> None:
    with pytest.raises(ValueError, match="the replay buffer is empty"):
        next(ReplayBuffer(3, capacity=10).sample(4, 1))
    with pytest.raises(ValueError, match="got capacity=0"):
        ReplayBuffer(3, capacity=0)
