"""Priorities: chances in proportion, weights that undo them, and nothing lost in saving."""

import pytest
import torch

from parnassus.reinforcement.experience.prioritised_replay import PrioritisedReplayBuffer, sample_proportionally

from ..numbered_transitions import numbered


def test_chances_are_in_proportion() -> None:
    torch.manual_seed(0)
    priorities = torch.tensor([[1.0, 0.0, 3.0, 4.0], [5.0, 5.0, 0.0, 0.0]], dtype=torch.float64)
    places, chances = sample_proportionally(priorities, 40_000)
    for learner in range(2):
        counts = torch.bincount(places[learner], minlength=4) / 40_000
        torch.testing.assert_close(counts.double(), priorities[learner] / priorities[learner].sum(), atol=1e-3, rtol=0)
    torch.testing.assert_close(chances[0], (priorities[0] / 8)[places[0]])


def test_weights_undo_the_preference_in_the_mean() -> None:
    torch.manual_seed(0)
    memory = PrioritisedReplayBuffer(3, capacity=8, alpha=1.0)
    memory.add(numbered(0, 8, 1))
    (batch,) = memory.sample(8, 1)
    assert batch.weights is not None
    assert batch.weights.tolist() == [[1.0] * 8]  # all alike at first
    memory.update_priorities(batch._replace(indices=torch.arange(8)[None]), torch.arange(1.0, 9)[None])
    (batch,) = memory.sample(80_000, 1, progress=1.0)
    assert batch.weights is not None
    number = batch.transitions.rewards
    assert float(number.mean()) > 4.3  # the wrong ones come more often
    assert float((batch.weights * number).sum() / batch.weights.sum()) == pytest.approx(3.5, abs=0.02)


def test_what_is_new_comes_first_and_the_correction_grows() -> None:
    torch.manual_seed(0)
    memory = PrioritisedReplayBuffer(3, capacity=100, alpha=1.0, initial_beta=0.5)
    memory.add(numbered(0, 10, 1))
    (batch,) = memory.sample(10, 1)
    memory.update_priorities(batch._replace(indices=torch.arange(10)[None]), torch.linspace(0.5, 5, 10)[None])
    memory.add(numbered(10, 1, 1))
    assert float(memory.priorities[0, 10]) == pytest.approx(5.0, abs=1e-5)
    early, late = (next(memory.sample(500, 1, progress=progress)).weights for progress in (0.0, 1.0))
    assert early is not None
    assert late is not None
    assert float(early.min()) == pytest.approx(0.1**0.5, abs=1e-4)
    assert float(late.min()) == pytest.approx(0.1, abs=1e-4)


def test_it_goes_on_from_what_was_saved() -> None:
    memory, again = (PrioritisedReplayBuffer(3, capacity=10, num_learners=2) for _ in range(2))
    memory.add(numbered(0, 7))
    memory.update_priorities(next(memory.sample(4, 1)), 3 * torch.rand(2, 4))
    again.load_state_dict(memory.state_dict())
    for each in (memory, again):
        each.add(numbered(7, 5))
    assert torch.equal(memory.table, again.table)
    assert torch.equal(memory.priorities, again.priorities)


def test_powers_that_make_no_sense_are_told() -> None:
    with pytest.raises(ValueError, match=r"got alpha=-1\.0"):
        PrioritisedReplayBuffer(3, capacity=10, alpha=-1.0)
