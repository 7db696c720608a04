"""Claims about what speaks for and against ReLU, and about random networks of it (Diehl sec. 1)."""

from itertools import pairwise
from math import pi

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.layers.activations import Activation, relu, relu_slope, sigmoid, tanh
from parnassus.layers.claims.dense import normal
from parnassus.layers.dense import Dense, mlp
from parnassus.layers.initialisation import xavier_normal
from parnassus.layers.topology import betti, landmarks
from parnassus.losses.classification import softmax


@claim("D1.0.10", "D1.0.4")
def relu_is_positively_homogeneous() -> Evidence:
    """ReLU(αx) = α ReLU(x) for α > 0, not for α < 0; a network without biases inherits it (Diehl sec. 1)."""
    torch.manual_seed(0)
    x, factor = normal(300), normal(300, seed=1).abs()
    network = mlp((4, 9, 9, 3), initialise=xavier_normal()).double()
    with_bias = mlp((4, 9, 9, 3)).double()
    points = normal(50, 4)
    return all_of(
        up=close(relu(factor * x), factor * relu(x), atol=1e-15),
        mirrored_it_fails=at_least((relu(-factor * x) + factor * relu(x)).abs().max(), 1.0),
        network=close(network(7.0 * points), 7.0 * network(points), rtol=1e-12, atol=1e-12),
        not_with_biases=at_least((with_bias(7.0 * points) - 7.0 * with_bias(points)).abs().max(), 0.1),
    )


@claim("D1.0.10")
def only_relu_gives_true_zeros() -> Evidence:
    """At a symmetric start half of the ReLU activations are exactly 0; tanh and sigmoid give none (Diehl sec. 1)."""
    torch.manual_seed(0)
    x = normal(400, 30)

    def zeros(activation: Activation) -> float:
        hidden = mlp((30, 300, 300), activation=activation, output=activation, initialise=xavier_normal()).double()
        return float((hidden(x) == 0).double().mean())

    return all_of(
        relu=close(zeros(relu), 0.5, atol=0.03), tanh=close(zeros(tanh), 0.0), sigmoid=close(zeros(sigmoid), 0.0)
    )


def shape(points: Tensor, scale: float) -> Tensor:
    """Pieces and holes."""
    return torch.tensor(betti(points, scale))


@claim("D1.0.10")
def relu_folds_and_tanh_cannot() -> Evidence:
    """Folding by |x| = ReLU(x) + ReLU(−x) takes the hole from a ring; tanh layers keep it (Diehl sec. 1)."""
    angle = 2 * pi * torch.arange(60, dtype=torch.float64) / 60
    ring = torch.stack([angle.cos(), angle.sin()], 1)
    folded = relu(ring) + relu(-ring)
    bent = tanh(tanh(ring @ torch.tensor([[1.0, 0.4], [-0.3, 0.8]], dtype=torch.float64)))
    spread = landmarks(normal(500, 2), 40)
    return all_of(
        folded_is_absolute=close(folded, ring.abs()),
        ring=close(shape(ring, 0.4), torch.tensor([1, 1])),
        after_the_fold=close(shape(folded, 0.4), torch.tensor([1, 0])),
        after_two_tanh_layers=close(shape(bent, 0.3), torch.tensor([1, 1])),
        two_rings=close(shape(torch.cat([ring, ring + 5]), 0.4), torch.tensor([2, 2])),
        landmarks_differ=close(len(set(spread.tolist())), 40),
    )


@claim("D1.0.10")
def a_dead_layer_never_moves() -> Evidence:
    """Where all pre-activations are negative the layer's gradients are exactly 0, and stay so (Diehl sec. 1)."""
    torch.manual_seed(0)
    network = mlp((3, 6, 1)).double()
    x, y = normal(100, 3), normal(100, 1, seed=1)
    with torch.no_grad():
        network.get_parameter("0.bias").fill_(-20.0)
    start = network.get_parameter("0.weight").detach().clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    largest = 0.0
    for _ in range(50):
        optimizer.zero_grad()
        (network(x) - y).square().mean().backward()
        slopes = [network.get_parameter(f"0.{name}").grad for name in ("weight", "bias")]
        largest = max(largest, *(float(slope.abs().max()) for slope in slopes if slope is not None))
        optimizer.step()
    return all_of(
        gradients=close(largest, 0.0),
        weights=close(network.get_parameter("0.weight"), start),
        only_the_mean_is_learned=close(network(x), y.mean(), atol=1e-4),
    )


@claim("D1.0.10", "D1.0.4", "Z5.4")
def the_slope_of_relu_jumps_at_zero() -> Evidence:
    """One-sided slopes at 0 are 0 and 1; torch and we take 0, and no normal input ever hits it (Diehl sec. 1)."""
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    (taken,) = torch.autograd.grad(relu(zero).sum(), zero)
    h = torch.tensor([1e-3, 1e-6, 1e-9], dtype=torch.float64)
    x = normal(1_000_000)
    return all_of(
        from_the_left=close((relu(-h) - relu(zero)) / -h, 0.0),
        from_the_right=close((relu(h) - relu(zero)) / h, 1.0),
        taken=close(taken, 0.0),
        ours=close(relu_slope(zero), 0.0),
        hits=close((x == 0).sum(), 0),
        indicator=close(relu(x), (x >= 0) * x),
        twice_is_once=close(relu(relu(x)), relu(x)),
        difference=close(relu(x) - relu(-x), x),
    )


@claim("D1.0.10")
def far_away_a_relu_classifier_is_certain() -> Evidence:
    """Along a ray max_k softmax(f(αx))_k → 1 as α grows; with bounded units it levels off (Hein, Diehl sec. 1)."""
    torch.manual_seed(0)
    far = 10.0 ** torch.arange(0, 7, dtype=torch.float64)
    rays = normal(64, 2)
    rays = rays / rays.norm(dim=1, keepdim=True)

    def confidence(activation: Activation) -> Tensor:
        network = mlp((2, 32, 32, 3), activation=activation).double()
        return torch.stack([softmax(network(alpha * rays)).amax(1) for alpha in far])  # (alpha, ray)

    with_relu, with_tanh = confidence(relu), confidence(tanh)
    return all_of(
        nearly_all_rays_certain=at_least((with_relu[-1] > 0.999).double().mean(), 0.95),
        unsure_near_the_origin=at_most(with_relu[0], 0.6),
        tanh_levels_off=close(with_tanh[-1], with_tanh[-2], atol=1e-4),
        tanh_stays_unsure=at_most(with_tanh[-1], 0.9),
    )


@claim("D1.0.12", "C-01")
def without_biases_all_creases_meet_at_the_origin() -> Evidence:
    """A 2-5-1 network without biases has f(αx) = α f(x) and ten sectors at most (Diehl ex. 1.2)."""
    torch.manual_seed(0)
    angle = 2 * pi * torch.arange(7_200, dtype=torch.float64) / 7_200 + 1e-4
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    sectors, rest = [], []
    for _ in range(10):
        network = mlp((2, 5, 1), initialise=xavier_normal()).double()
        first = network[0]
        assert isinstance(first, Dense)
        on = circle @ first.weight > 0
        sectors.append(int((on != on.roll(1, 0)).any(1).sum()))
        rest.append((network(3.0 * circle) - 3.0 * network(circle)).abs().max())
    return all_of(homogeneous=close(torch.stack(rest), 0.0, atol=1e-12), sectors=close(torch.tensor(sectors), 10))


@claim("C-01")
def a_random_network_is_made_of_flat_pieces() -> Evidence:
    """A 1-5-1 ReLU network is straight between its at most five kinks x = −b_i/a_i (Diehl ex. 1.2)."""
    torch.manual_seed(0)
    network = mlp((1, 5, 1)).double()
    kinks = (-network.get_parameter("0.bias") / network.get_parameter("0.weight")[0]).detach().sort().values
    ends = [float(kinks[0]) - 5, *kinks.tolist(), float(kinks[-1]) + 5]
    bends = []
    for low, high in pairwise(ends):
        x = torch.linspace(low, high, 11, dtype=torch.float64)[:, None]
        bends.append(network(x)[:, 0].diff(n=2).abs().max())
    around = torch.stack([kinks - 0.01, kinks, kinks + 0.01], 1)[..., None]
    return all_of(
        straight_between=close(torch.stack(bends), 0.0, atol=1e-13),
        bent_at_each_kink=at_least(network(around)[..., 0].diff(n=2).abs(), 1e-6),
    )
