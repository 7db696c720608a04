"""The training written out by hand is torch's Adam on torch's gradients."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.data.toy import moons
from parnassus.layers import activations as act
from parnassus.layers import layer_outputs, mlp
from parnassus.layers.playground import Networks, train_adam
from parnassus.losses import cross_entropy

PAIRS = [
    (act.relu, act.relu_slope),
    (act.leaky_relu, act.leaky_relu_slope),
    (act.tanh, act.tanh_slope),
    (act.gelu, act.gelu_slope),
    (act.elu, act.elu_slope),
]


def data() -> tuple[Tensor, Tensor]:
    split = moons(60, noise=0.2)
    assert split.y is not None
    return split.x, split.y


def fresh(sizes: tuple[int, ...], pair: tuple[act.Activation, act.Activation] = PAIRS[2]) -> Networks:
    torch.manual_seed(1)
    return Networks.fresh(sizes, *pair)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("sizes", [(2, 2), (2, 7, 2), (2, 5, 4, 3, 2)])
def test_it_follows_torch(sizes: tuple[int, ...], pair: tuple[act.Activation, act.Activation]) -> None:
    x, y = data()
    x = x.double()
    start = fresh(sizes, pair)
    start = Networks(start.sizes, start.activation, start.slope, start.theta.double())
    ours = train_adam(start, x, y, rate=0.02, moments=(0, 30), penalty=lambda weight: 0.01 * weight)
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
    torch.testing.assert_close(ours.theta[1], vector.detach(), rtol=1e-8, atol=1e-10)
    assert torch.equal(ours.theta[0], start.theta[0])


def test_the_values_of_all_layers_at_all_moments() -> None:
    x, y = data()
    trained = train_adam(fresh((2, 6, 5, 2)), x, y, rate=0.1, moments=(0, 3, 10))
    values = trained.values(x)
    assert [tuple(each.shape) for each in values] == [(3, 60, 6), (3, 60, 5), (3, 60, 2)]
    network = mlp((2, 6, 5, 2), activation=act.tanh)
    nn.utils.vector_to_parameters(trained.theta[1], network.parameters())
    for ours, theirs in zip(values, layer_outputs(network, x), strict=True):
        torch.testing.assert_close(ours[1], theirs)


def test_moons_are_learned_and_the_start_is_left_alone() -> None:
    x, y = data()
    start = fresh((2, 8, 8, 2))
    before = start.theta.clone()
    trained = train_adam(start, x, y, rate=0.03, moments=(300,))
    assert torch.equal(start.theta, before)
    assert float((trained.values(x)[-1][0].argmax(1) == y).double().mean()) >= 0.98


def test_wrong_input_gets_a_sentence() -> None:
    x, y = data()
    with pytest.raises(ValueError, match=r"rate must be positive; got rate=0"):
        train_adam(fresh((2, 2)), x, y, rate=0.0, moments=(1,))
    for moments in ((), (3, 1), (1, 1), (-1, 2)):
        with pytest.raises(ValueError, match=r"step numbers in rising order; got moments=\("):
            train_adam(fresh((2, 2)), x, y, rate=0.1, moments=moments)
