"""Adam without detours takes the steps of PyTorch's, bit for bit, and goes on from its state."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.optim import Adam

from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))]


def moved(optimizer: Adam, theta: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        torch.manual_seed(step)
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        for parameter in theta:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()


def test_its_steps_are_those_of_fused_adam() -> None:
    theta, other = parameters(), parameters()
    lean, plain = FlatAdam(theta, 0.1, eps=1e-5), Adam(other, 0.1, eps=1e-5, fused=True)
    moved(lean, theta, range(4))
    moved(plain, other, range(4))
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))
    again = FlatAdam(other, 0.1, eps=1e-5)
    again.load_state_dict(plain.state_dict())
    moved(lean, theta, range(4, 8))
    moved(again, other, range(4, 8))
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))


def test_a_state_loaded_later_counts() -> None:
    theta, other = parameters(), parameters()
    lean, once = FlatAdam(theta, 0.1), FlatAdam(other, 0.1)
    moved(lean, theta, range(3))
    moved(once, other, range(2))
    lean.load_state_dict(deepcopy(once.state_dict()))
    with torch.no_grad():
        for mine, theirs in zip(theta, other, strict=True):
            mine.copy_(theirs)
    moved(lean, theta, range(2, 5))
    moved(once, other, range(2, 5))
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))


def test_two_groups_are_refused() -> None:
    first, second = parameters()
    with pytest.raises(ValueError, match="got 2 groups"):
        FlatAdam([{"params": [first]}, {"params": [second]}])


def test_what_is_almost_nothing_becomes_nothing() -> None:
    """A gradient that stays 0 leaves no tiny mean behind, and the weights are PyTorch's all the same."""
    theta, other = parameters(), parameters()
    lean, plain = FlatAdam(theta, 0.1), Adam(other, 0.1, fused=True)
    for step in range(1_025):
        for mine, theirs in zip(theta, other, strict=True):
            mine.grad, theirs.grad = (torch.full_like(each, float(step == 0)) for each in (mine, theirs))
        lean.step()
        plain.step()
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))
    assert all(0 < float(plain.state[own]["exp_avg"].max()) < 1e-38 for own in other)
    assert not any(bool(lean.state[own]["exp_avg"].any()) for own in theta)


def test_gradients_are_shortened_before() -> None:
    theta, other = parameters(), parameters()
    lean, plain = FlatAdam(theta, 0.1, max_norm=0.5), Adam(other, 0.1, fused=True)
    for each in (theta, other):
        torch.manual_seed(1)
        for own in each:
            own.grad = torch.randn_like(own)
    norms = clip_grad_norm_per_learner(other, 0.5, num_learners=1)
    assert float(norms) > 0.5
    lean.step()
    plain.step()
    for mine, theirs in zip(theta, other, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-7, rtol=0)
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)
