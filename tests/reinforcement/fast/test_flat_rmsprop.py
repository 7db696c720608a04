"""RMSprop without detours takes the steps of PyTorch's, bit for bit, and goes on from its state."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.optim import RMSprop

from parnassus.reinforcement.fast.flat_rmsprop import FlatRMSprop
from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(2, 3, 4)), nn.Parameter(torch.randn(2, 1, 5))]


def moved(optimizer: RMSprop, theta: list[nn.Parameter], steps: range, *, max_norm: float | None = None) -> None:
    for step in steps:
        torch.manual_seed(step)
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        for parameter in theta:
            parameter.grad = torch.randn_like(parameter)
        if max_norm is not None:
            clip_grad_norm_per_learner(theta, max_norm, num_learners=2)
        optimizer.step()


def test_its_steps_are_those_of_rmsprop() -> None:
    theta, other = parameters(), parameters()
    lean, plain = FlatRMSprop(theta, 0.1, alpha=0.9, eps=1e-5), RMSprop(other, 0.1, alpha=0.9, eps=1e-5)
    moved(lean, theta, range(4))
    moved(plain, other, range(4))
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))
    again = FlatRMSprop(other, 0.1, alpha=0.9, eps=1e-5)
    again.load_state_dict(plain.state_dict())
    moved(lean, theta, range(4, 8))
    moved(again, other, range(4, 8))
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))


def test_pytorch_goes_on_from_its_state() -> None:
    theta, other = parameters(), parameters()
    lean, plain = FlatRMSprop(theta, 0.1), RMSprop(other, 0.1)
    moved(lean, theta, range(3))
    plain.load_state_dict(deepcopy(lean.state_dict()))
    with torch.no_grad():
        for mine, theirs in zip(other, theta, strict=True):
            mine.copy_(theirs)
    moved(lean, theta, range(3, 6))
    moved(plain, other, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))


def test_gradients_are_shortened_before() -> None:
    theta, other = parameters(), parameters()
    moved(FlatRMSprop(theta, 0.1, max_norm=0.5, num_learners=2), theta, range(3))
    moved(RMSprop(other, 0.1), other, range(3), max_norm=0.5)
    assert all(torch.equal(a, b) for a, b in zip(theta, other, strict=True))
    free = parameters()
    moved(FlatRMSprop(free, 0.1), free, range(3))
    assert not torch.equal(free[0], theta[0])


def test_two_groups_are_refused() -> None:
    first, second = parameters()
    with pytest.raises(ValueError, match="got 2 groups"):
        FlatRMSprop([{"params": [first]}, {"params": [second]}])
