"""Parameters that are parts of one vector stay what they were to everybody else."""

from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from parnassus.reinforcement.fast.flat_parameters import FlatParameters


def test_numbers_and_gradients_stay_and_move_together() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 5)
    before, x = {name: own.clone() for name, own in layer.state_dict().items()}, torch.randn(7, 3)
    layer(x).sum().backward()
    slopes = [own.grad.clone() for own in layer.parameters() if own.grad is not None]
    vector = FlatParameters(list(layer.parameters()))
    assert all(torch.equal(own, before[name]) for name, own in layer.state_dict().items())
    for own, slope in zip(layer.parameters(), slopes, strict=True):
        assert torch.equal(own.grad, slope)  # type: ignore[arg-type]  # there is one
    vector.vector.add_(1)
    assert all(torch.equal(own, before[name] + 1) for name, own in layer.state_dict().items())
    layer.load_state_dict(before)
    for part, own in zip(vector.views(vector.vector), layer.parameters(), strict=True):
        assert torch.equal(part, own)


def test_gradients_kept_elsewhere_are_fetched() -> None:
    first, second = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(20))
    vector = FlatParameters([first, second])
    first.grad, second.grad = torch.ones(2, 3), 2 * torch.ones(20)
    slope = vector.clipped_gradient(torch.inf, 1)
    assert float(slope.sum()) == 46
    first.grad.fill_(3)  # from now on it is a part again
    assert float(slope.sum()) == 58
    assert float(vector.clipped_gradient(0.5, 1).norm()) == pytest.approx(0.5, abs=1e-5)
    first.grad = None
    with pytest.raises(ValueError, match=r"one of shape \[2, 3\] has none"):
        vector.clipped_gradient(torch.inf, 1)


def test_what_cannot_be_one_is_refused() -> None:
    alone, other = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="one device and one dtype"):
        FlatParameters([alone, other])
    pair = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))]
    state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
    for steps, own in enumerate(pair):
        state[own] = {"step": torch.tensor(float(steps)), "mean": torch.zeros(2)}
    with pytest.raises(ValueError, match=r"the same number of steps; got \[0.0, 1.0\]"):
        FlatParameters(pair).flatten_state(state, ["mean"])
