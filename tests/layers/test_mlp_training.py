"""Training with hand-written gradients and Adam against autograd and `torch.optim.Adam`."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.data.built_in.toy import moons
from parnassus.layers import activations as act
from parnassus.layers import layer_outputs, mlp
from parnassus.layers.mlp_training import MLPSnapshots, train_adam
from parnassus.losses import cross_entropy

ACTIVATIONS = [
    (act.relu, act.relu_derivative),
    (act.leaky_relu, act.leaky_relu_derivative),
    (act.tanh, act.tanh_derivative),
    (act.gelu, act.gelu_derivative),
    (act.elu, act.elu_derivative),
]


def load_moons() -> tuple[Tensor, Tensor]:
    split = moons(60, noise=0.2)
    assert split.y is not None
    return split.x, split.y


def initialise(sizes: tuple[int, ...], pair: tuple[act.Activation, act.Activation] = ACTIVATIONS[2]) -> MLPSnapshots:
    torch.manual_seed(1)
    return MLPSnapshots.initialise(sizes, *pair)


@pytest.mark.parametrize("pair", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(2, 2), (2, 7, 2), (2, 5, 4, 3, 2)])
def test_training_matches_torch(sizes: tuple[int, ...], pair: tuple[act.Activation, act.Activation]) -> None:
    x, y = load_moons()
    x = x.double()
    initial = initialise(sizes, pair)
    initial = MLPSnapshots(initial.sizes, initial.activation, initial.activation_derivative, initial.theta.double())
    actual = train_adam(initial, x, y, learning_rate=0.02, checkpoints=(0, 30), penalty=lambda weight: 0.01 * weight)
    torch.manual_seed(1)
    network = mlp(sizes, activation=pair[0]).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(30):
        weights = [each for name, each in network.named_parameters() if "weight" in name]
        loss = cross_entropy(network(x), y).mean() + 0.005 * sum(each.square().sum() for each in weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    vector = nn.utils.parameters_to_vector(network.parameters())
    torch.testing.assert_close(actual.theta[1], vector.detach(), rtol=1e-8, atol=1e-10)
    assert torch.equal(actual.theta[0], initial.theta[0])


def test_layer_outputs_match_the_network_at_a_checkpoint() -> None:
    x, y = load_moons()
    trained = train_adam(initialise((2, 6, 5, 2)), x, y, learning_rate=0.1, checkpoints=(0, 3, 10))
    values = trained.layer_outputs(x)
    assert [tuple(each.shape) for each in values] == [(3, 60, 6), (3, 60, 5), (3, 60, 2)]
    network = mlp((2, 6, 5, 2), activation=act.tanh)
    nn.utils.vector_to_parameters(trained.theta[1], network.parameters())
    for actual, expected in zip(values, layer_outputs(network, x), strict=True):
        torch.testing.assert_close(actual[1], expected)


def test_training_fits_the_moons_and_preserves_the_initial_parameters() -> None:
    x, y = load_moons()
    initial = initialise((2, 8, 8, 2))
    before = initial.theta.clone()
    trained = train_adam(initial, x, y, learning_rate=0.03, checkpoints=(300,))
    assert torch.equal(initial.theta, before)
    assert float((trained.layer_outputs(x)[-1][0].argmax(1) == y).double().mean()) >= 0.98


def test_invalid_input_raises_value_error() -> None:
    x, y = load_moons()
    with pytest.raises(ValueError, match=r"learning_rate must be positive; got learning_rate=0"):
        train_adam(initialise((2, 2)), x, y, learning_rate=0.0, checkpoints=(1,))
    for checkpoints in ((), (3, 1), (1, 1), (-1, 2)):
        with pytest.raises(ValueError, match=r"increasing step numbers; got checkpoints=\("):
            train_adam(initialise((2, 2)), x, y, learning_rate=0.1, checkpoints=checkpoints)
