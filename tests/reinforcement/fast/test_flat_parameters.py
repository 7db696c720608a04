"""Parameters stored as views of one vector."""

from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from parnassus.reinforcement.fast.flat_parameters import FlatParameters


def test_flattening_keeps_values_and_gradients_and_shares_memory() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 5)
    before, x = {name: parameter.clone() for name, parameter in layer.state_dict().items()}, torch.randn(7, 3)
    layer(x).sum().backward()
    gradients = [parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None]
    vector = FlatParameters(list(layer.parameters()))
    assert all(torch.equal(parameter, before[name]) for name, parameter in layer.state_dict().items())
    for parameter, gradient in zip(layer.parameters(), gradients, strict=True):
        assert torch.equal(parameter.grad, gradient)  # type: ignore[arg-type]  # the gradient is not None
    vector.vector.add_(1)
    assert all(torch.equal(parameter, before[name] + 1) for name, parameter in layer.state_dict().items())
    layer.load_state_dict(before)
    for view, parameter in zip(vector.views(vector.vector), layer.parameters(), strict=True):
        assert torch.equal(view, parameter)


def test_gradients_assigned_later_are_copied_into_the_vector() -> None:
    first, second = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(20))
    vector = FlatParameters([first, second])
    first.grad, second.grad = torch.ones(2, 3), 2 * torch.ones(20)
    gradient = vector.clipped_gradient(torch.inf, 1)
    assert float(gradient.sum()) == 46
    first.grad.fill_(3)  # the gradient is a view of the vector again
    assert float(gradient.sum()) == 58
    assert float(vector.clipped_gradient(0.5, 1).norm()) == pytest.approx(0.5, abs=1e-5)
    first.grad = None
    with pytest.raises(ValueError, match=r"one of shape \[2, 3\] has none"):
        vector.clipped_gradient(torch.inf, 1)


def test_incompatible_parameters_raise_value_error() -> None:
    single, double = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2, dtype=torch.float64))
    with pytest.raises(ValueError, match="one device and one dtype"):
        FlatParameters([single, double])
    pair = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))]
    state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
    for steps, parameter in enumerate(pair):
        state[parameter] = {"step": torch.tensor(float(steps)), "mean": torch.zeros(2)}
    with pytest.raises(ValueError, match=r"the same number of steps; got \[0.0, 1.0\]"):
        FlatParameters(pair).flatten_state(state, ["mean"])
