"""Dense layers: shapes, initialisation, gradients, merging and invalid sizes."""

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


def test_weight_has_shape_inputs_by_outputs() -> None:
    layer = Dense(3, 2)
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    expected = torch.stack([layer.weight[0] + layer.bias, 2 * layer.weight[1] + layer.bias])
    torch.testing.assert_close(layer(x), expected)


def test_leading_axes_are_batch_axes() -> None:
    weight, bias = torch.randn(4, 3), torch.randn(3)
    x = torch.randn(2, 5, 4)
    torch.testing.assert_close(affine(x, weight, bias)[1, 2], affine(x[1, 2], weight, bias))


def test_default_initialisation_has_the_variance_of_torch() -> None:
    """Uniform on ±1/√784: variance 1/(3·784), as for nn.Linear."""
    torch.manual_seed(0)
    layer, reference = Dense(784, 512), nn.Linear(784, 512)
    for weight in (layer.weight, reference.weight):
        assert float(weight.detach().abs().max()) <= 1 / 28
        assert float(weight.detach().var()) == pytest.approx(1 / (3 * 784), rel=0.01)
    assert float(layer.bias.detach().abs().max()) <= 1 / 28


def test_custom_initialiser_is_applied_to_all_layers() -> None:
    def constant(weight: Tensor, bias: Tensor) -> None:
        nn.init.constant_(weight, 0.5)
        nn.init.constant_(bias, -1.0)

    out = mlp((4, 3, 2), activation=relu, initialise=constant)(torch.ones(1, 4))
    torch.testing.assert_close(out, torch.full((1, 2), 3 * 0.5 * (4 * 0.5 - 1) - 1))


def test_all_parameters_receive_gradients() -> None:
    torch.manual_seed(0)
    network = mlp((5, 7, 6, 3), activation=tanh, output=sigmoid)
    network(torch.randn(8, 5)).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name


def test_state_dict_round_trip() -> None:
    first, second = mlp((5, 7, 3)), mlp((5, 7, 3))
    x = torch.randn(4, 5)
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(x), second(x))


def test_examples_are_processed_independently() -> None:
    network, x = mlp((5, 7, 3)).double(), torch.randn(6, 5, dtype=torch.float64)
    torch.testing.assert_close(network(x)[2], network(x[2:3])[0])


def test_count_parameters_excludes_frozen_parameters() -> None:
    network = mlp((784, 512, 512, 10))
    assert count_parameters(network) == 669_706
    network[0].requires_grad_(requires_grad=False)
    assert count_parameters(network) == 669_706 - 785 * 512


def test_repr() -> None:
    assert repr(Dense(3, 2, activation=relu)) == "Dense(3 → 2, relu)"
    assert "PReLU" in repr(Dense(3, 2, activation=nn.PReLU()))


def test_count_parameters_includes_the_activation() -> None:
    assert count_parameters(Dense(3, 2, activation=nn.PReLU())) == 3 * 2 + 2 + 1


def test_invalid_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got inputs=0, outputs=3"):
        Dense(0, 3)
    with pytest.raises(ValueError, match=r"input and output; got sizes=\(4,\)"):
        mlp((4,))


def test_fan_in_is_the_first_axis() -> None:
    torch.manual_seed(0)
    weight, bias = torch.empty(100, 4), torch.empty(4)
    fan_in_uniform(weight, bias)
    assert 0.09 < float(weight.abs().max()) <= 0.1


def test_layer_outputs_match_truncated_networks() -> None:
    torch.manual_seed(0)
    network, x = nn.Sequential(nn.Flatten(), *mlp((6, 5, 4, 3))), torch.randn(2, 1, 2, 3)
    outputs = layer_outputs(network, x)
    assert [tuple(h.shape) for h in outputs] == [(2, 6), (2, 5), (2, 4), (2, 3)]
    for length, h in enumerate(outputs, 1):
        torch.testing.assert_close(h, network[:length](x))


def test_merged_layers_keep_the_last_activation() -> None:
    torch.manual_seed(0)
    layers = [Dense(4, 6), Dense(6, 2), Dense(2, 5, activation=tanh)]
    merged, x = merge_affine_layers(layers), torch.randn(9, 4)
    torch.testing.assert_close(merged(x), nn.Sequential(*layers)(x))
    assert merged.activation is tanh
    assert int(torch.linalg.matrix_rank(merged.weight)) == 2
    assert merge_affine_layers(mlp((3, 4, 2), activation=identity).double()).weight.dtype == torch.float64


def test_merging_a_single_layer_returns_a_copy() -> None:
    layer = Dense(3, 2, activation=relu)
    merged = merge_affine_layers([layer])
    assert torch.equal(merged.weight, layer.weight)
    assert merged.weight is not layer.weight


def test_merging_nonlinear_layers_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"layer 1 is Dense\(4 → 4, relu\)"):
        merge_affine_layers([Dense(3, 4), Dense(4, 4, activation=relu), Dense(4, 2)])
    with pytest.raises(ValueError, match=r"layer 1 is ReLU\(\)"):
        merge_affine_layers([Dense(3, 4), nn.ReLU(), Dense(4, 2)])
    with pytest.raises(ValueError, match="at least one dense layer; got none"):
        merge_affine_layers([])


def test_mismatched_input_size_raises_value_error() -> None:
    with pytest.raises(ValueError, match="x must have 64 features per example; got 49"):
        Dense(64, 10)(torch.zeros(5, 49))
