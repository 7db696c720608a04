"""The network whose gradient is written by hand is StackedMLP with ReLU, value by value and slope by slope."""

from copy import deepcopy

import torch

from parnassus.reinforcement.agents.stacked_networks import StackedMLP
from parnassus.reinforcement.fast.relu_network import ReLUMLP


def test_values_and_gradients_are_those_of_autograd() -> None:
    torch.manual_seed(0)
    ours = ReLUMLP(3, [4, 6, 5, 2]).double()
    plain = StackedMLP(3, [4, 6, 5, 2], activation=torch.relu).double()
    plain.load_state_dict(ours.state_dict())
    x, away = torch.randn(3, 7, 4, dtype=torch.float64), torch.randn(3, 7, 2, dtype=torch.float64)
    slopes = []
    models: tuple[StackedMLP, ...] = (ours, plain)
    for model in models:
        own = x.clone().requires_grad_()
        y = model(own)
        slopes.append([y, *torch.autograd.grad((y * away).sum(), [own, *model.parameters()])])
    torch.testing.assert_close(slopes[0], slopes[1])
    for _ in range(2):  # written anew, not added
        trace = ours.forward_with_trace(x)
        ours.write_gradients(trace, away)
    torch.testing.assert_close([trace.outputs, *(p.grad for p in ours.parameters())], [slopes[1][0], *slopes[1][2:]])


def test_a_copy_learns_its_own_weights() -> None:
    model = ReLUMLP(1, [3, 4, 2])
    other = deepcopy(model).double()
    x = torch.randn(1, 5, 3)
    torch.testing.assert_close(other(x.double()).float(), model(x))
    other.write_gradients(other.forward_with_trace(x.double()), torch.ones(1, 5, 2).double())
    assert all(p.grad is not None and p.grad.dtype == torch.float64 for p in other.parameters())
    assert all(p.grad is None for p in model.parameters())


def test_it_begins_small_and_every_learner_anew() -> None:
    weight, bias = ReLUMLP(2, [16, 500]).parameters()
    for parameter in (weight, bias):
        assert 0.24 < float(parameter.detach().abs().max()) <= 0.25
    assert not torch.equal(weight[0], weight[1])


def test_one_layer_alone_is_linear() -> None:
    model = ReLUMLP(1, [3, 2])
    with torch.no_grad():
        list(model.parameters())[1].zero_()
    x = torch.randn(1, 4, 3)
    torch.testing.assert_close(model(-x), -model(x))
