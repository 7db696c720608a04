"""ReLUMLP compared with StackedMLP with ReLU."""

from copy import deepcopy

import torch

from parnassus.reinforcement.agents.stacked_networks import StackedMLP
from parnassus.reinforcement.fast.relu_network import ReLUMLP


def test_values_and_gradients_match_autograd() -> None:
    torch.manual_seed(0)
    network = ReLUMLP(3, [4, 6, 5, 2]).double()
    reference = StackedMLP(3, [4, 6, 5, 2], activation=torch.relu).double()
    reference.load_state_dict(network.state_dict())
    x, output_gradient = torch.randn(3, 7, 4, dtype=torch.float64), torch.randn(3, 7, 2, dtype=torch.float64)
    results = []
    models: tuple[StackedMLP, ...] = (network, reference)
    for model in models:
        inputs = x.clone().requires_grad_()
        y = model(inputs)
        results.append([y, *torch.autograd.grad((y * output_gradient).sum(), [inputs, *model.parameters()])])
    torch.testing.assert_close(results[0], results[1])
    for _ in range(2):  # gradients are overwritten, not accumulated
        activations = network.forward_with_activations(x)
        network.write_gradients(activations, output_gradient)
    torch.testing.assert_close(
        [activations.outputs, *(p.grad for p in network.parameters())], [results[1][0], *results[1][2:]]
    )


def test_deepcopy_has_independent_gradients() -> None:
    model = ReLUMLP(1, [3, 4, 2])
    copy = deepcopy(model).double()
    x = torch.randn(1, 5, 3)
    torch.testing.assert_close(copy(x.double()).float(), model(x))
    copy.write_gradients(copy.forward_with_activations(x.double()), torch.ones(1, 5, 2).double())
    assert all(p.grad is not None and p.grad.dtype == torch.float64 for p in copy.parameters())
    assert all(p.grad is None for p in model.parameters())


def test_initial_parameters_are_bounded_and_differ_between_learners() -> None:
    weight, bias = ReLUMLP(2, [16, 500]).parameters()
    for parameter in (weight, bias):
        assert 0.24 < float(parameter.detach().abs().max()) <= 0.25
    assert not torch.equal(weight[0], weight[1])


def test_single_layer_is_linear() -> None:
    model = ReLUMLP(1, [3, 2])
    with torch.no_grad():
        list(model.parameters())[1].zero_()
    x = torch.randn(1, 4, 3)
    torch.testing.assert_close(model(-x), -model(x))
