"""Prioritised replay: sampling probabilities, importance weights and restoring."""

import pytest
import torch

from parnassus.reinforcement.experience.prioritised_replay import PrioritisedReplayBuffer, sample_proportionally

from ..numbered_transitions import numbered_transitions


def test_sampling_is_proportional_to_priority() -> None:
    torch.manual_seed(0)
    priorities = torch.tensor([[1.0, 0.0, 3.0, 4.0], [5.0, 5.0, 0.0, 0.0]], dtype=torch.float64)
    indices, probabilities = sample_proportionally(priorities, 40_000)
    for learner in range(2):
        frequencies = torch.bincount(indices[learner], minlength=4) / 40_000
        torch.testing.assert_close(
            frequencies.double(), priorities[learner] / priorities[learner].sum(), atol=1e-3, rtol=0
        )
    torch.testing.assert_close(probabilities[0], (priorities[0] / 8)[indices[0]])


def test_importance_weights_correct_the_mean() -> None:
    torch.manual_seed(0)
    buffer = PrioritisedReplayBuffer(3, capacity=8, alpha=1.0)
    buffer.add(numbered_transitions(0, 8, 1))
    (batch,) = buffer.sample(8, 1)
    assert batch.weights is not None
    assert batch.weights.tolist() == [[1.0] * 8]  # equal priorities initially
    buffer.update_priorities(batch._replace(indices=torch.arange(8)[None]), torch.arange(1.0, 9)[None])
    (batch,) = buffer.sample(80_000, 1, progress=1.0)
    assert batch.weights is not None
    rewards = batch.transitions.rewards
    assert float(rewards.mean()) > 4.3  # rows of high priority are drawn more often
    assert float((batch.weights * rewards).sum() / batch.weights.sum()) == pytest.approx(3.5, abs=0.02)


def test_new_rows_have_maximal_priority_and_beta_is_annealed() -> None:
    torch.manual_seed(0)
    buffer = PrioritisedReplayBuffer(3, capacity=100, alpha=1.0, initial_beta=0.5)
    buffer.add(numbered_transitions(0, 10, 1))
    (batch,) = buffer.sample(10, 1)
    buffer.update_priorities(batch._replace(indices=torch.arange(10)[None]), torch.linspace(0.5, 5, 10)[None])
    buffer.add(numbered_transitions(10, 1, 1))
    assert float(buffer.priorities[0, 10]) == pytest.approx(5.0, abs=1e-5)
    early, late = (next(buffer.sample(500, 1, progress=progress)).weights for progress in (0.0, 1.0))
    assert early is not None
    assert late is not None
    assert float(early.min()) == pytest.approx(0.1**0.5, abs=1e-4)
    assert float(late.min()) == pytest.approx(0.1, abs=1e-4)


def test_state_dict_round_trip() -> None:
    buffer, restored = (PrioritisedReplayBuffer(3, capacity=10, num_learners=2) for _ in range(2))
    buffer.add(numbered_transitions(0, 7))
    buffer.update_priorities(next(buffer.sample(4, 1)), 3 * torch.rand(2, 4))
    restored.load_state_dict(buffer.state_dict())
    for b in (buffer, restored):
        b.add(numbered_transitions(7, 5))
    assert torch.equal(buffer.table, restored.table)
    assert torch.equal(buffer.priorities, restored.priorities)


def test_negative_alpha_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"got alpha=-1\.0"):
        PrioritisedReplayBuffer(3, capacity=10, alpha=-1.0)
