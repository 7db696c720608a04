"""Claims about advantages and drawbacks of ReLU and about random ReLU networks (Diehl sec. 1)."""

from itertools import pairwise
from math import pi

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.layers.activations import Activation, relu, relu_derivative, sigmoid, tanh
from parnassus.layers.architecture import dead_units
from parnassus.layers.betti_numbers import betti_numbers, farthest_point_sampling
from parnassus.layers.dense import Dense, mlp
from parnassus.layers.initialisation import xavier_normal
from parnassus.losses.classification import softmax
from parnassus.probability import standard_normal


@claim("D1.0.10", "D1.0.4")
def relu_is_positively_homogeneous() -> Evidence:
    """ReLU(αx) = α ReLU(x) for α > 0, not for α < 0; the same holds for networks without biases (Diehl sec. 1)."""
    torch.manual_seed(0)
    x, factor = standard_normal(300), standard_normal(300, seed=1).abs()
    network = mlp((4, 9, 9, 3), initialise=xavier_normal()).double()
    with_bias = mlp((4, 9, 9, 3)).double()
    points = standard_normal(50, 4)
    return all_of(
        positive_factor=close(relu(factor * x), factor * relu(x), atol=1e-15),
        not_for_negative_factors=greater_equal((relu(-factor * x) + factor * relu(x)).abs().max(), 1.0),
        network=close(network(7.0 * points), 7.0 * network(points), rtol=1e-12, atol=1e-12),
        not_with_biases=greater_equal((with_bias(7.0 * points) - 7.0 * with_bias(points)).abs().max(), 0.1),
    )


@claim("D1.0.10")
def only_relu_gives_exact_zeros() -> Evidence:
    """At initialisation half of the ReLU activations are exactly 0, none of tanh and the sigmoid (Diehl sec. 1)."""
    torch.manual_seed(0)
    x = standard_normal(400, 30)

    def fraction_of_zeros(activation: Activation) -> float:
        hidden = mlp((30, 300, 300), activation=activation, output=activation, initialise=xavier_normal()).double()
        return float((hidden(x) == 0).double().mean())

    return all_of(
        relu=close(fraction_of_zeros(relu), 0.5, atol=0.03),
        tanh=close(fraction_of_zeros(tanh), 0.0),
        sigmoid=close(fraction_of_zeros(sigmoid), 0.0),
    )


def betti_tensor(points: Tensor, scale: float) -> Tensor:
    """The Betti numbers as a tensor: connected components and holes."""
    return torch.tensor(betti_numbers(points, scale))


@claim("D1.0.10")
def relu_changes_topology_and_tanh_does_not() -> Evidence:
    """The map |x| = ReLU(x) + ReLU(−x) removes the hole of a ring; invertible tanh layers keep it (Diehl sec. 1)."""
    angle = 2 * pi * torch.arange(60, dtype=torch.float64) / 60
    ring = torch.stack([angle.cos(), angle.sin()], 1)
    folded = relu(ring) + relu(-ring)
    transformed = tanh(tanh(ring @ torch.tensor([[1.0, 0.4], [-0.3, 0.8]], dtype=torch.float64)))
    landmarks = farthest_point_sampling(standard_normal(500, 2), 40)
    return all_of(
        folding_is_absolute_value=close(folded, ring.abs()),
        ring=close(betti_tensor(ring, 0.4), torch.tensor([1, 1])),
        after_folding=close(betti_tensor(folded, 0.4), torch.tensor([1, 0])),
        after_two_tanh_layers=close(betti_tensor(transformed, 0.3), torch.tensor([1, 1])),
        two_rings=close(betti_tensor(torch.cat([ring, ring + 5]), 0.4), torch.tensor([2, 2])),
        landmarks_differ=close(len(set(landmarks.tolist())), 40),
    )


@claim("D1.0.10")
def a_dead_layer_never_learns() -> Evidence:
    """If all pre-activations of a layer are negative, its gradients are 0 and remain so (Diehl sec. 1)."""
    torch.manual_seed(0)
    network = mlp((3, 6, 1)).double()
    x, y = standard_normal(100, 3), standard_normal(100, 1, seed=1)
    with torch.no_grad():
        network.get_parameter("0.bias").copy_(torch.tensor([-20.0, 20.0, -20.0, 20.0, 20.0, 20.0]))
        some = dead_units(network, x)
        network.get_parameter("0.bias").fill_(-20.0)
    start = network.get_parameter("0.weight").detach().clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    largest = 0.0
    for _ in range(50):
        optimizer.zero_grad()
        (network(x) - y).square().mean().backward()
        gradients = [network.get_parameter(f"0.{name}").grad for name in ("weight", "bias")]
        largest = max(largest, *(float(gradient.abs().max()) for gradient in gradients if gradient is not None))
        optimizer.step()
    return all_of(
        two_of_six_are_dead=close(some[0], torch.tensor([1, 0, 1, 0, 0, 0])),
        all_are_dead=close(dead_units(network, x)[0], 1),
        gradients=close(largest, 0.0),
        weights=close(network.get_parameter("0.weight"), start),
        output_is_the_mean_target=close(network(x), y.mean(), atol=1e-4),
    )


@claim("D1.0.10", "D1.0.4", "Z5.4")
def the_derivative_of_relu_is_discontinuous_at_zero() -> Evidence:
    """One-sided derivatives at 0 are 0 and 1; torch uses 0; normal inputs are never exactly 0 (Diehl sec. 1)."""
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    (at_zero,) = torch.autograd.grad(relu(zero).sum(), zero)
    h = torch.tensor([1e-3, 1e-6, 1e-9], dtype=torch.float64)
    x = standard_normal(1_000_000)
    return all_of(
        from_the_left=close((relu(-h) - relu(zero)) / -h, 0.0),
        from_the_right=close((relu(h) - relu(zero)) / h, 1.0),
        torch_at_zero=close(at_zero, 0.0),
        closed_form_at_zero=close(relu_derivative(zero), 0.0),
        exact_zeros=close((x == 0).sum(), 0),
        indicator=close(relu(x), (x >= 0) * x),
        idempotent=close(relu(relu(x)), relu(x)),
        difference=close(relu(x) - relu(-x), x),
    )


@claim("D1.0.10")
def relu_classifiers_are_overconfident_far_from_data() -> Evidence:
    """max_k softmax(f(αx))_k → 1 as α grows; with tanh units it has a limit below 1 (Hein et al., Diehl sec. 1)."""
    torch.manual_seed(0)
    alphas = 10.0 ** torch.arange(0, 7, dtype=torch.float64)
    rays = standard_normal(64, 2)
    rays = rays / rays.norm(dim=1, keepdim=True)

    def confidence(activation: Activation) -> Tensor:
        network = mlp((2, 32, 32, 3), activation=activation).double()
        return torch.stack([softmax(network(alpha * rays)).amax(1) for alpha in alphas])  # (alpha, ray)

    with_relu, with_tanh = confidence(relu), confidence(tanh)
    return all_of(
        most_rays_above_0_999=greater_equal((with_relu[-1] > 0.999).double().mean(), 0.95),
        low_confidence_near_the_origin=less_equal(with_relu[0], 0.6),
        tanh_converges=close(with_tanh[-1], with_tanh[-2], atol=1e-4),
        tanh_stays_below_0_9=less_equal(with_tanh[-1], 0.9),
    )


@claim("D1.0.12", "C-01")
def without_biases_all_kinks_pass_through_the_origin() -> Evidence:
    """A 2-5-1 network without biases has f(αx) = α f(x) and at most ten linear sectors (Diehl ex. 1.2)."""
    torch.manual_seed(0)
    angle = 2 * pi * torch.arange(7_200, dtype=torch.float64) / 7_200 + 1e-4
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    sectors, deviations = [], []
    for _ in range(10):
        network = mlp((2, 5, 1), initialise=xavier_normal()).double()
        first = network[0]
        assert isinstance(first, Dense)
        active = circle @ first.weight > 0
        sectors.append(int((active != active.roll(1, 0)).any(1).sum()))
        deviations.append((network(3.0 * circle) - 3.0 * network(circle)).abs().max())
    return all_of(homogeneous=close(torch.stack(deviations), 0.0, atol=1e-12), sectors=close(torch.tensor(sectors), 10))


@claim("C-01")
def a_relu_network_is_piecewise_linear() -> Evidence:
    """A 1-5-1 ReLU network is linear between its at most five kinks x = −b_i/a_i (Diehl ex. 1.2)."""
    torch.manual_seed(0)
    network = mlp((1, 5, 1)).double()
    kinks = (-network.get_parameter("0.bias") / network.get_parameter("0.weight")[0]).detach().sort().values
    ends = [float(kinks[0]) - 5, *kinks.tolist(), float(kinks[-1]) + 5]
    curvatures = []
    for low, high in pairwise(ends):
        x = torch.linspace(low, high, 11, dtype=torch.float64)[:, None]
        curvatures.append(network(x)[:, 0].diff(n=2).abs().max())
    around = torch.stack([kinks - 0.01, kinks, kinks + 0.01], 1)[..., None]
    return all_of(
        linear_between_kinks=close(torch.stack(curvatures), 0.0, atol=1e-13),
        slope_changes_at_each_kink=greater_equal(network(around)[..., 0].diff(n=2).abs(), 1e-6),
    )
