"""Memory gives back what it was given, all alike, and forgets the oldest first."""

import pytest
import torch

from parnassus.reinforcement.experience.replay_buffer import ReplayBuffer
from parnassus.reinforcement.experience.transitions import Transitions

from ..numbered_transitions import numbered


def remembered(memory: ReplayBuffer, rows: int = 4_000) -> Transitions:
    (batch,) = memory.sample(rows, 1)
    return batch.transitions


def test_every_part_comes_back_with_its_row() -> None:
    memory = ReplayBuffer(3, capacity=50, num_learners=2)
    memory.add(numbered(0, 20))
    found = remembered(memory, 200)
    number = found.rewards
    assert torch.equal(found.observations, number[..., None].expand(-1, -1, 3))
    assert torch.equal(found.next_observations, -number[..., None].expand(-1, -1, 3))
    assert torch.equal(found.actions, number.long() % 5)
    assert torch.equal(found.terminated, number % 2 == 1)
    torch.testing.assert_close(found.discounts, number / 100)


def test_the_oldest_give_way() -> None:
    memory = ReplayBuffer(3, capacity=10, num_learners=2)
    for first in range(0, 21, 7):
        memory.add(numbered(first, 7))
    assert len(memory) == 10
    assert sorted(set(remembered(memory).rewards[0].tolist())) == list(range(11, 21))
    memory.add(numbered(100, 35))
    assert sorted(set(remembered(memory).rewards[1].tolist())) == list(range(125, 135))


def test_all_are_drawn_alike_and_learners_apart() -> None:
    torch.manual_seed(0)
    memory = ReplayBuffer(3, capacity=10, num_learners=2)
    memory.add(numbered(0, 10))
    found = remembered(memory, 20_000)
    counts = torch.bincount(found.rewards[0].long(), minlength=10).double()
    assert float(((counts - 2_000).square() / 2_000).sum()) < 27.9  # χ² with 9 degrees: p > 0.001
    assert not torch.equal(found.rewards[0], found.rewards[1])


def test_batches_are_those_rows_in_turn() -> None:
    memory = ReplayBuffer(3, capacity=50, num_learners=2)
    memory.add(numbered(0, 50))
    drawn = list(memory.sample(400, 5))
    assert [part.indices.shape[1] for part in drawn] == [800, 800, 400]  # as many as lie near the processor together
    batches = [batch for part in drawn for batch in part.batches(400)]
    assert len(batches) == 5
    for batch in batches:
        assert batch.transitions.observations.shape == (2, 400, 3)
        assert torch.equal(batch.transitions.rewards, batch.indices.float())
        assert torch.equal(batch.transitions.terminated, batch.indices % 2 == 1)
    weighted = drawn[0]._replace(weights=drawn[0].transitions.rewards)
    for batch in weighted.batches(400):
        assert batch.weights is not None
        assert torch.equal(batch.weights, batch.transitions.rewards)


def test_it_goes_on_from_what_was_saved() -> None:
    memory, again = (ReplayBuffer(3, capacity=10, num_learners=2) for _ in range(2))
    for first in (0, 7):
        memory.add(numbered(first, 7))
    again.load_state_dict(memory.state_dict())
    for each in (memory, again):
        each.add(numbered(14, 5))
    assert torch.equal(memory.table, again.table)
    with pytest.raises(ValueError, match="must fit this one"):
        ReplayBuffer(4, capacity=10, num_learners=2).load_state_dict(memory.state_dict())


def test_nothing_to_draw_from_is_told() -> None:
    with pytest.raises(ValueError, match="the replay buffer is empty"):
        next(ReplayBuffer(3, capacity=10).sample(4, 1))
    with pytest.raises(ValueError, match="got capacity=0"):
        ReplayBuffer(3, capacity=0)
