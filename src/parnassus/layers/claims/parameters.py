"""Claims about parameter vectors, norms, folded layers, depth and width, and other frameworks (Diehl secs. 0, 1)."""

from itertools import combinations
from math import comb, sqrt

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.atlas.index import resolve
from parnassus.layers.activations import identity, relu
from parnassus.layers.anatomy import anatomy
from parnassus.layers.claims.dense import normal
from parnassus.layers.dense import Dense, affine, collapse, mlp, parameter_count
from parnassus.layers.frameworks import COUNTERPARTS
from parnassus.layers.parameters import flatten, unflatten, with_parameters
from parnassus.losses.classification import one_hot


@claim("D0.1")
def the_norm_is_a_length() -> Evidence:
    """‖x‖ = √(Σ x_i²) is torch's norm and obeys the triangle; e_i picks row i of a weight (Diehl sec. 0)."""
    x, y, weight = normal(200, 7), normal(200, 7, seed=1), normal(7, 3, seed=2)
    length = x.square().sum(1).sqrt()
    basis = one_hot(torch.arange(7), 7).double()
    return all_of(
        torch_norm=close(torch.linalg.vector_norm(x, dim=1), length, rtol=1e-14),
        triangle=at_most((x + y).square().sum(1).sqrt() - length - y.square().sum(1).sqrt(), 0.0),
        unit_vectors_have_length_one=close(basis.square().sum(1).sqrt(), 1.0),
        unit_vectors_pick_rows=close(basis @ weight, weight),
    )


@claim("D0.2")
def torch_starts_as_the_table_says() -> Evidence:
    """Defaults of torch: ε = 1e−5, momentum 0.1 for the new mean, Linear on ±1/√m; ours the same (Diehl sec. 0)."""
    torch.manual_seed(0)
    norm, linear, dense = nn.BatchNorm1d(4), nn.Linear(300, 200), Dense(300, 200)
    x = normal(50, 4).float() + 3
    norm(x)
    assert norm.running_mean is not None
    dropped = nn.Dropout(0.2)(torch.ones(50_000))
    kernel, bias = normal(5, 3), normal(3, seed=1)  # as Keras keeps them
    theirs = nn.Linear(5, 3).double()
    theirs.load_state_dict({"weight": kernel.mT, "bias": bias})
    return all_of(
        epsilon=close(norm.eps, 1e-5),
        momentum_is_the_weight_of_the_new=close(norm.running_mean, 0.1 * x.mean(0), atol=1e-6),
        linear_within=at_most(linear.weight.abs().max(), 1 / sqrt(300)),
        linear_spread=close(linear.weight.var(), 1 / 900, rtol=0.02),
        ours_spread=close(dense.weight.var(), 1 / 900, rtol=0.02),
        wider_under_glorot=at_least(nn.init.xavier_uniform_(torch.empty(300, 200)).var(), 3 / 900),
        dropout_keeps_the_mean=close(dropped.mean(), 1.0, atol=0.01),
        kernel_is_the_transpose=close(theirs(normal(9, 5)), affine(normal(9, 5), kernel, bias), atol=1e-14),
    )


@claim("D0.2")
def on_three_axes_keras_pools_over_two() -> Evidence:
    """Batch norm over batch and n of (batch, n, c) is torch's on the transposed array (Diehl sec. 0)."""
    x = normal(6, 5, 3)
    mean, variance = x.mean((0, 1)), x.var((0, 1), correction=0)
    pooled = (x - mean) / (variance + 1e-3).sqrt()
    each_place = (x - x.mean(0)) / (x.var(0, correction=0) + 1e-3).sqrt()
    with_torch = nn.BatchNorm1d(3, eps=1e-3).double()(x.mT).mT
    return all_of(
        transposed=close(with_torch, pooled, atol=1e-13),
        not_place_by_place=at_least((with_torch - each_place).abs().max(), 0.1),
    )


@claim("D0.2")
def our_counterparts_exist() -> Evidence:
    """Every part that the table of counterparts calls ours can be found under its name (Diehl sec. 0)."""
    named = [each.ours for each in COUNTERPARTS if each.ours]
    return close(sum(resolve(name) is not None for name in named), len(named))


@claim("D1.0.1")
def a_network_is_a_function_of_one_vector() -> Evidence:
    """θ → network → θ is the identity, f_θ the same function; a 2-5-1 network has 21 numbers (Diehl sec. 1)."""
    torch.manual_seed(0)
    network, other = mlp((2, 5, 1)).double(), mlp((2, 5, 1)).double()
    theta, x = flatten(network), normal(40, 2)
    moved = normal(21)
    with torch.no_grad():
        other.load_state_dict(unflatten(other, moved))
    slope = grad(lambda vector: with_parameters(network, vector)(x).square().mean())(theta)
    network(x).square().mean().backward()
    by_backward = torch.cat([each.grad.reshape(-1) for each in network.parameters() if each.grad is not None])
    return all_of(
        numbers=close(len(theta), 21),
        counted=close(parameter_count(network), 2 * 5 + 5 + 5 * 1 + 1),
        there_and_back=close(flatten(other), moved),
        same_function=close(with_parameters(network, moved)(x), other(x), atol=1e-15),
        the_network_is_untouched=close(flatten(network), theta),
        gradient=close(slope, by_backward, atol=1e-14),
    )


@claim("D1.0.2")
def an_affine_map_is_linear_without_its_bias() -> Evidence:
    """f(x + y) = f(x) + f(y) holds for b = 0 and is off by exactly b otherwise (Diehl sec. 1)."""
    x, y, weight, bias = normal(30, 4), normal(30, 4, seed=1), normal(4, 3, seed=2), normal(3, seed=3)
    zero = torch.zeros_like(bias)
    linear = affine(x, weight, zero) + affine(y, weight, zero) - affine(x + y, weight, zero)
    off = affine(x, weight, bias) + affine(y, weight, bias) - affine(x + y, weight, bias)
    return all_of(
        linear_without=close(linear, 0.0, atol=1e-14),
        off_by_the_bias=close(off, bias, atol=1e-14),
        which_is_something=at_least(bias.abs().max(), 0.1),
    )


@claim("D1.0.3", "Z5.3")
def a_stack_of_affine_layers_is_one() -> Evidence:
    """The folded layer is the stack, its rank the narrowest width; one ReLU between and it is not (Diehl sec. 1)."""
    torch.manual_seed(0)
    stack = mlp((8, 12, 3, 10, 6), activation=identity).double()
    folded, x = collapse(stack), normal(100, 8)
    first, second = list(stack)[:2]
    assert isinstance(first, Dense)
    assert isinstance(second, Dense)
    by_hand = x @ (first.weight @ second.weight) + (first.bias @ second.weight + second.bias)
    bent = mlp((8, 12, 6), activation=relu).double()
    design = torch.cat([x, torch.ones(100, 1, dtype=torch.float64)], 1)
    rest = bent(x) - design @ torch.linalg.lstsq(design, bent(x)).solution  # of the best affine map
    return all_of(
        same_map=close(folded(x), stack(x), atol=1e-14),
        two_by_hand=close(collapse([first, second])(x), by_hand, atol=1e-14),
        rank=close(torch.linalg.matrix_rank(folded.weight), 3),
        no_affine_map_is_bent=at_least(rest.abs().max(), 0.01),
    )


@claim("C-07", "D1.0.3")
def two_matrices_take_another_step() -> Evidence:
    """A step on W₁ and W₂ moves W₁W₂ by −η (G W₂ᵀW₂ + W₁W₁ᵀ G), a step on one matrix by −η G (Diehl sec. 1)."""
    target, first, second, rate = normal(6, 6), normal(6, 4, seed=1), normal(4, 6, seed=2), 1e-6

    def loss(weight: Tensor) -> Tensor:
        return (weight - target).square().sum() / 2  # of white inputs

    g = grad(loss)(first @ second)
    slopes = grad(lambda pair: loss(pair[0] @ pair[1]))((first, second))
    moved = (first - rate * slopes[0]) @ (second - rate * slopes[1])
    step = (moved - first @ second) / -rate
    alike = torch.cosine_similarity(step.flatten(), g.flatten(), dim=0)
    rest = torch.linalg.svdvals(target)[4:].square().sum() / 2
    return all_of(
        step=close(step, g @ second.T @ second + first @ first.T @ g, atol=1e-3),
        another_direction=at_most(alike, 0.95),
        bottleneck_leaves_at_least_the_small_singular_values=at_least(loss(first @ second), rest),
    )


@claim("D1.0.11", "Z5.2")
def a_dense_layer_is_a_loop_over_coordinates() -> Evidence:
    """Dense(x)_i = σ(Σ_j A_ij x_j + b_i) with A = Wᵀ; two of them are O = σ(X W₁ + b₁) W₂ + b₂ (Diehl eq. 1)."""
    torch.manual_seed(0)
    layer, x = Dense(4, 3, activation=relu).double(), normal(1, 4)[0]
    a, b = layer.weight.detach().mT, layer.bias.detach()
    loop = [max(0.0, float(sum(a[i, j] * x[j] for j in range(4)) + b[i])) for i in range(3)]
    network, inputs = mlp((4, 4, 3)).double(), normal(20, 4)
    w1, b1, w2, b2 = network.parameters()
    theirs = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    theirs.load_state_dict({"0.weight": w1.mT, "0.bias": b1, "2.weight": w2.mT, "2.bias": b2})
    return all_of(
        coordinates=close(layer(x), torch.tensor(loop), atol=1e-15),
        by_hand=close(network(inputs), relu(inputs @ w1 + b1) @ w2 + b2, atol=1e-14),
        torch_sequential=close(network(inputs), theirs(inputs), atol=1e-14),
    )


@claim("D1.0.13")
def the_measures_of_a_network() -> Evidence:
    """A 3-8-5-2 network has depth 3, two hidden layers, width 8 and 4·8 + 9·5 + 6·2 parameters (Diehl sec. 1)."""
    measured = anatomy(mlp((3, 8, 5, 2)))
    theirs = anatomy(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2)))
    return all_of(
        depth=close(measured.depth, 3),
        hidden=close(measured.hidden, 2),
        width=close(measured.width, 8),
        parameters=close(measured.parameters, 4 * 8 + 9 * 5 + 6 * 2),
        the_same_in_torch=close(float(measured == theirs), 1.0),
    )


@erratum(
    "D1.0.13",
    printed="the depth is n, and also n − 1",
    right="n layers have weights and n − 1 are hidden; region counts go by the hidden ones",
)
def depth_has_two_meanings() -> Correction:
    """A 2-5-1 network has the regions of one hidden layer, not of the two that depth n would give (Diehl sec. 1)."""
    torch.manual_seed(0)
    network = mlp((2, 5, 1)).double()
    measured = anatomy(network)
    weight, bias = network.get_parameter("0.weight").detach(), network.get_parameter("0.bias").detach()
    regions = _regions(weight, bias)
    return Correction(
        printed=at_least(regions, _regions_of_depth(measured.depth, inputs=2, width=5)),
        corrected=close(regions, _regions_of_depth(measured.hidden, inputs=2, width=5)),
    )


def _regions_of_depth(hidden: int, *, inputs: int, width: int) -> int:
    """The number of linear pieces that networks with so many hidden layers can have (Diehl thm. 1.7)."""
    most: int = (width // inputs) ** (inputs * (hidden - 1)) * sum(comb(width, j) for j in range(inputs + 1))
    return most


def _regions(weight: Tensor, bias: Tensor) -> int:
    """The regions into which the lines x·w_i + b_i = 0 cut the plane: those around the points where two cross."""
    patterns = set()
    for pair in combinations(range(weight.shape[1]), 2):
        lines = weight[:, list(pair)]
        for signs in torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64):
            place = torch.linalg.solve(lines.mT, 1e-6 * signs - bias[list(pair)])
            patterns.add(tuple((affine(place, weight, bias) > 0).tolist()))
    return len(patterns)
