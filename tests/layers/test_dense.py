"""Dense layers: shapes, initialisation, gradients, and errors for wrong sizes."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.layers import (
    Dense,
    affine,
    count_parameters,
    fan_in_uniform,
    identity,
    layer_outputs,
    merge_affine_layers,
    mlp,
    relu,
    sigmoid,
    tanh,
)


def test_the_weight_is_inputs_by_outputs() -> None:
    layer = Dense(3, 2)
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    expected = torch.stack([layer.weight[0] + layer.bias, 2 * layer.weight[1] + layer.bias])
    torch.testing.assert_close(layer(x), expected)


def test_leading_axes_are_batches() -> None:
    weight, bias = torch.randn(4, 3), torch.randn(3)
    x = torch.randn(2, 5, 4)
    torch.testing.assert_close(affine(x, weight, bias)[1, 2], affine(x[1, 2], weight, bias))


def test_the_start_has_the_spread_of_torch() -> None:
    """Uniform on ±1/√784: variance 1/(3·784), as for nn.Linear."""
    torch.manual_seed(0)
    ours, theirs = Dense(784, 512), nn.Linear(784, 512)
    for weight in (ours.weight, theirs.weight):
        assert float(weight.detach().abs().max()) <= 1 / 28
        assert float(weight.detach().var()) == pytest.approx(1 / (3 * 784), rel=0.01)
    assert float(ours.bias.detach().abs().max()) <= 1 / 28


def test_an_initialiser_is_a_function_of_weight_and_bias() -> None:
    def constant(weight: Tensor, bias: Tensor) -> None:
        nn.init.constant_(weight, 0.5)
        nn.init.constant_(bias, -1.0)

    out = mlp((4, 3, 2), activation=relu, initialise=constant)(torch.ones(1, 4))
    torch.testing.assert_close(out, torch.full((1, 2), 3 * 0.5 * (4 * 0.5 - 1) - 1))


def test_every_parameter_gets_a_gradient() -> None:
    torch.manual_seed(0)
    network = mlp((5, 7, 6, 3), activation=tanh, output=sigmoid)
    network(torch.randn(8, 5)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name


def test_a_state_dict_carries_the_network_over() -> None:
    first, second = mlp((5, 7, 3)), mlp((5, 7, 3))
    x = torch.randn(4, 5)
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(x), second(x))


def test_rows_do_not_see_each_other() -> None:
    network, x = mlp((5, 7, 3)).double(), torch.randn(6, 5, dtype=torch.float64)
    torch.testing.assert_close(network(x)[2], network(x[2:3])[0])


def test_the_count_leaves_out_what_is_frozen() -> None:
    network = mlp((784, 512, 512, 10))
    assert count_parameters(network) == 669_706
    network[0].requires_grad_(requires_grad=False)
    assert count_parameters(network) == 669_706 - 785 * 512


def test_a_layer_says_what_it_is() -> None:
    assert repr(Dense(3, 2, activation=relu)) == "Dense(3 → 2, relu)"
    assert "PReLU" in repr(Dense(3, 2, activation=nn.PReLU()))


def test_an_activation_with_weights_is_trained_too() -> None:
    assert count_parameters(Dense(3, 2, activation=nn.PReLU())) == 3 * 2 + 2 + 1


def test_wrong_sizes_raise() -> None:
    with pytest.raises(ValueError, match="got inputs=0, outputs=3"):
        Dense(0, 3)
    with pytest.raises(ValueError, match=r"input and output; got sizes=\(4,\)"):
        mlp((4,))


def test_fan_in_is_the_first_axis() -> None:
    torch.manual_seed(0)
    weight, bias = torch.empty(100, 4), torch.empty(4)
    fan_in_uniform(weight, bias)
    assert 0.09 < float(weight.abs().max()) <= 0.1


def test_the_outputs_of_layers_are_those_of_the_chain_cut_short() -> None:
    torch.manual_seed(0)
    network, x = nn.Sequential(nn.Flatten(), *mlp((6, 5, 4, 3))), torch.randn(2, 1, 2, 3)
    outputs = layer_outputs(network, x)
    assert [tuple(h.shape) for h in outputs] == [(2, 6), (2, 5), (2, 4), (2, 3)]
    for length, h in enumerate(outputs, 1):
        torch.testing.assert_close(h, network[:length](x))


def test_a_folded_stack_keeps_its_last_activation() -> None:
    torch.manual_seed(0)
    stack = [Dense(4, 6), Dense(6, 2), Dense(2, 5, activation=tanh)]
    folded, x = merge_affine_layers(stack), torch.randn(9, 4)
    torch.testing.assert_close(folded(x), nn.Sequential(*stack)(x))
    assert folded.activation is tanh
    assert int(torch.linalg.matrix_rank(folded.weight)) == 2
    assert merge_affine_layers(mlp((3, 4, 2), activation=identity).double()).weight.dtype == torch.float64


def test_a_single_layer_folds_into_a_copy() -> None:
    layer = Dense(3, 2, activation=relu)
    folded = merge_affine_layers([layer])
    assert torch.equal(folded.weight, layer.weight)
    assert folded.weight is not layer.weight


def test_only_affine_layers_fold() -> None:
    with pytest.raises(ValueError, match=r"layer 1 is Dense\(4 → 4, relu\)"):
        merge_affine_layers([Dense(3, 4), Dense(4, 4, activation=relu), Dense(4, 2)])
    with pytest.raises(ValueError, match=r"layer 1 is ReLU\(\)"):
        merge_affine_layers([Dense(3, 4), nn.ReLU(), Dense(4, 2)])
    with pytest.raises(ValueError, match="at least one dense layer; got none"):
        merge_affine_layers([])


def test_examples_of_another_size_raise() -> None:
    with pytest.raises(ValueError, match="x must have 64 features per example; got 49"):
        Dense(64, 10)(torch.zeros(5, 49))
