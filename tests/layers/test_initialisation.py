"""Initialisers and gains against torch, by variance and by integration."""

from collections.abc import Callable
from math import sqrt
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from parnassus.layers import (
    GAINS,
    Activation,
    Dense,
    Initialiser,
    gelu,
    he_normal,
    he_uniform,
    identity,
    initialise_linear_layers,
    leaky_relu,
    leaky_relu_gain,
    mlp,
    normal_initialiser,
    relu,
    sigmoid,
    tanh,
    variance_preserving_gain,
    xavier_normal,
    xavier_uniform,
)
from parnassus.probability import standard_normal


@pytest.mark.parametrize(
    ("initialiser", "torch_initialiser"),
    [
        (xavier_normal(5 / 3), lambda w: nn.init.xavier_normal_(w, gain=5 / 3)),
        (xavier_uniform(5 / 3), lambda w: nn.init.xavier_uniform_(w, gain=5 / 3)),
        (he_normal(), lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu")),
        (he_uniform(), lambda w: nn.init.kaiming_uniform_(w, nonlinearity="relu")),
        (normal_initialiser(0.01), lambda w: nn.init.normal_(w, std=0.01)),
    ],
)
def test_initialisers_match_torch(initialiser: Initialiser, torch_initialiser: Callable[[Tensor], Tensor]) -> None:
    """With the same seed; torch stores the weight as outputs × inputs."""
    weight, bias = torch.empty(600, 400), torch.ones(400)
    torch.manual_seed(0)
    initialiser(weight, bias)
    torch.manual_seed(0)
    reference = torch_initialiser(torch.empty(400, 600)).reshape(600, 400)  # same random numbers in memory order
    torch.testing.assert_close(weight, reference)
    assert bool((bias == 0).all())


def test_uniform_and_normal_initialisers_have_the_same_variance() -> None:
    torch.manual_seed(0)
    for uniform, normal in ((xavier_uniform(), xavier_normal()), (he_uniform(), he_normal())):
        variances = [float(Dense(300, 700, initialise=each).weight.detach().var()) for each in (uniform, normal)]
        assert variances[0] == pytest.approx(variances[1], rel=0.02)


def test_gains_match_torch() -> None:
    names: dict[Activation, Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]] = {
        identity: "linear",
        sigmoid: "sigmoid",
        tanh: "tanh",
        relu: "relu",
        leaky_relu: "leaky_relu",
        torch.selu: "selu",
    }
    assert set(names) == set(GAINS)
    for activation, gain in GAINS.items():
        assert gain == pytest.approx(nn.init.calculate_gain(names[activation]))
    assert leaky_relu_gain(0.3) == pytest.approx(nn.init.calculate_gain("leaky_relu", 0.3))
    assert leaky_relu_gain(0.0) == pytest.approx(sqrt(2))


def test_variance_preserving_gain_has_known_values() -> None:
    assert variance_preserving_gain(identity) == pytest.approx(1, abs=1e-9)
    assert variance_preserving_gain(relu) == pytest.approx(sqrt(2), abs=1e-9)
    assert variance_preserving_gain(lambda z: leaky_relu(z, 0.3)) == pytest.approx(leaky_relu_gain(0.3), abs=1e-9)
    assert variance_preserving_gain(torch.selu) == pytest.approx(1, abs=1e-6)  # SELU's constants are chosen for this


@pytest.mark.parametrize("activation", [tanh, sigmoid, gelu])
def test_variance_preserving_gain_matches_monte_carlo(activation: Callable[[Tensor], Tensor]) -> None:
    z = standard_normal(1_000_000)
    assert variance_preserving_gain(activation) == pytest.approx(
        float(activation(z).square().mean() ** -0.5), rel=0.005
    )


def test_initialise_linear_layers_uses_the_fan_in() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(1_000, 50), nn.ReLU(), nn.Linear(50, 400, bias=False))
    initialise_linear_layers(network, he_normal())
    wide, narrow = network.get_parameter("0.weight"), network.get_parameter("2.weight")
    assert float(wide.detach().var()) == pytest.approx(2 / 1_000, rel=0.03)
    assert float(narrow.detach().var()) == pytest.approx(2 / 50, rel=0.03)
    assert bool((network.get_parameter("0.bias") == 0).all())


def test_mlp_accepts_an_initialiser() -> None:
    torch.manual_seed(0)
    network = mlp((300, 200, 100), initialise=xavier_normal(sqrt(2)))
    assert float(network.get_parameter("0.weight").detach().var()) == pytest.approx(4 / 500, rel=0.03)
    assert float(network.get_parameter("1.weight").detach().var()) == pytest.approx(4 / 300, rel=0.03)


@pytest.mark.parametrize("make_initialiser", [xavier_normal, xavier_uniform, he_normal, he_uniform])
def test_non_positive_gain_raises_value_error(make_initialiser: Callable[[float], Initialiser]) -> None:
    with pytest.raises(ValueError, match="gain must be positive; got gain=0"):
        make_initialiser(0.0)


def test_non_positive_std_raises_value_error() -> None:
    with pytest.raises(ValueError, match="std must be positive; got std=-1"):
        normal_initialiser(-1.0)
