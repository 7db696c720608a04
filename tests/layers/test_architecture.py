"""Depth, width and number of parameters of known networks; dead units."""

import pytest
import torch
from torch import nn

from parnassus.layers import Architecture, architecture, dead_units, dense_classifier, mlp


def test_dense_classifier_has_known_depth_width_and_parameters() -> None:
    actual = architecture(dense_classifier(784, 10))
    assert actual == Architecture((784, 512, 512, 10), 669_706)
    assert (actual.depth, actual.hidden_layers, actual.width) == (3, 2, 512)


def test_input_does_not_count_towards_the_width() -> None:
    assert architecture(mlp((100, 7, 3))).width == 7


def test_single_layer_has_no_hidden_layers() -> None:
    actual = architecture(nn.Linear(4, 1))
    assert (actual.depth, actual.hidden_layers, actual.width, actual.parameters) == (1, 0, 1, 5)


def test_invalid_networks_raise_value_error() -> None:
    with pytest.raises(ValueError, match="layer 1 has 5 outputs, the next 6 inputs"):
        architecture(nn.Sequential(nn.Linear(2, 5), nn.Linear(6, 1)))
    with pytest.raises(ValueError, match="network must have dense layers"):
        architecture(nn.Sequential(nn.Conv2d(1, 2, 3)))


def test_units_with_very_low_biases_are_dead() -> None:
    torch.manual_seed(0)
    network, x = mlp((3, 6, 5, 2)), torch.randn(50, 3)
    with torch.no_grad():
        network.get_parameter("0.bias").fill_(10.0)
        network.get_parameter("0.bias")[[1, 4]] = -50.0
        network.get_parameter("1.bias").fill_(-50.0)
    first, second = dead_units(network, x)
    assert first.tolist() == [False, True, False, False, True, False]
    assert second.all()


def test_unit_active_for_one_example_is_not_dead() -> None:
    network = mlp((1, 1, 1))
    with torch.no_grad():
        network.get_parameter("0.weight").fill_(1.0)
        network.get_parameter("0.bias").fill_(-1.0)
    assert dead_units(network, torch.tensor([[0.0], [0.5]]))[0].all()
    assert not dead_units(network, torch.tensor([[0.0], [1.5]]))[0].any()
    assert not dead_units(mlp((1, 1, 1), activation=torch.tanh), torch.zeros(3, 1))[0].any()
    with pytest.raises(ValueError, match="at least one example; got none"):
        dead_units(network, torch.zeros(0, 1))
