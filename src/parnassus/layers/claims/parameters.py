"""Claims about parameter vectors, norms, merged layers, depth and width, and other frameworks (Diehl secs. 0, 1)."""

from itertools import combinations
from math import comb, sqrt

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.atlas.index import resolve
from parnassus.layers.activations import identity, relu
from parnassus.layers.architecture import architecture
from parnassus.layers.dense import Dense, affine, count_parameters, layer_outputs, merge_affine_layers, mlp
from parnassus.layers.keras_counterparts import COUNTERPARTS
from parnassus.layers.parameter_vector import flatten_parameters, unflatten_parameters, with_parameters
from parnassus.losses.classification import one_hot
from parnassus.probability import standard_normal


@claim("D0.1")
def the_norm_is_euclidean() -> Evidence:
    """‖x‖ = √(Σ x_i²) is torch's norm and satisfies the triangle inequality; e_i selects row i (Diehl sec. 0)."""
    x, y, weight = standard_normal(200, 7), standard_normal(200, 7, seed=1), standard_normal(7, 3, seed=2)
    norm = x.square().sum(1).sqrt()
    basis = one_hot(torch.arange(7), 7).double()
    return all_of(
        torch_norm=close(torch.linalg.vector_norm(x, dim=1), norm, rtol=1e-14),
        triangle_inequality=less_equal((x + y).square().sum(1).sqrt() - norm - y.square().sum(1).sqrt(), 0.0),
        unit_vectors_have_norm_one=close(basis.square().sum(1).sqrt(), 1.0),
        unit_vectors_select_rows=close(basis @ weight, weight),
    )


@claim("D0.2")
def torch_defaults_match_the_table() -> Evidence:
    """Defaults of torch, also used here: ε = 1e−5, momentum 0.1 for the new mean, Linear on ±1/√m (Diehl sec. 0)."""
    torch.manual_seed(0)
    norm, linear, dense = nn.BatchNorm1d(4), nn.Linear(300, 200), Dense(300, 200)
    x = standard_normal(50, 4).float() + 3
    norm(x)
    assert norm.running_mean is not None
    dropped = nn.Dropout(0.2)(torch.ones(50_000))
    kernel, bias = standard_normal(5, 3), standard_normal(3, seed=1)  # in the layout of Keras
    torch_network = nn.Linear(5, 3).double()
    torch_network.load_state_dict({"weight": kernel.mT, "bias": bias})
    return all_of(
        epsilon=close(norm.eps, 1e-5),
        momentum_weights_the_new_mean=close(norm.running_mean, 0.1 * x.mean(0), atol=1e-6),
        linear_bound=less_equal(linear.weight.abs().max(), 1 / sqrt(300)),
        linear_variance=close(linear.weight.var(), 1 / 900, rtol=0.02),
        dense_variance=close(dense.weight.var(), 1 / 900, rtol=0.02),
        glorot_variance_is_larger=greater_equal(nn.init.xavier_uniform_(torch.empty(300, 200)).var(), 3 / 900),
        dropout_preserves_the_mean=close(dropped.mean(), 1.0, atol=0.01),
        kernel_is_the_transpose=close(
            torch_network(standard_normal(9, 5)), affine(standard_normal(9, 5), kernel, bias), atol=1e-14
        ),
    )


@claim("D0.2")
def keras_batch_norm_averages_over_two_of_three_axes() -> Evidence:
    """Batch norm over axes batch and n of (batch, n, c) is torch's on the transposed array (Diehl sec. 0)."""
    x = standard_normal(6, 5, 3)
    mean, variance = x.mean((0, 1)), x.var((0, 1), correction=0)
    pooled = (x - mean) / (variance + 1e-3).sqrt()
    per_position = (x - x.mean(0)) / (x.var(0, correction=0) + 1e-3).sqrt()
    with_torch = nn.BatchNorm1d(3, eps=1e-3).double()(x.mT).mT
    return all_of(
        transposed=close(with_torch, pooled, atol=1e-13),
        not_per_position=greater_equal((with_torch - per_position).abs().max(), 0.1),
    )


@claim("D0.2")
def counterparts_in_this_library_exist() -> Evidence:
    """Every name in the column of the library's counterparts can be resolved (Diehl sec. 0)."""
    names = [each.parnassus for each in COUNTERPARTS if each.parnassus]
    return close(sum(resolve(name) is not None for name in names), len(names))


@claim("D1.0.1")
def a_network_is_a_function_of_its_parameter_vector() -> Evidence:
    """θ → network → θ is the identity, f_θ the same function; a 2-5-1 network has 21 parameters (Diehl sec. 1)."""
    torch.manual_seed(0)
    network, other = mlp((2, 5, 1)).double(), mlp((2, 5, 1)).double()
    theta, x = flatten_parameters(network), standard_normal(40, 2)
    new_theta = standard_normal(21)
    with torch.no_grad():
        other.load_state_dict(unflatten_parameters(other, new_theta))
    gradient = grad(lambda vector: with_parameters(network, vector)(x).square().mean())(theta)
    network(x).square().mean().backward()
    by_backward = torch.cat([each.grad.reshape(-1) for each in network.parameters() if each.grad is not None])
    return all_of(
        length=close(len(theta), 21),
        parameters=close(count_parameters(network), 2 * 5 + 5 + 5 * 1 + 1),
        round_trip=close(flatten_parameters(other), new_theta),
        same_function=close(with_parameters(network, new_theta)(x), other(x), atol=1e-15),
        network_unchanged=close(flatten_parameters(network), theta),
        gradient=close(gradient, by_backward, atol=1e-14),
    )


@claim("D1.0.2")
def an_affine_map_is_linear_without_its_bias() -> Evidence:
    """f(x + y) = f(x) + f(y) holds for b = 0; otherwise the two sides differ by b (Diehl sec. 1)."""
    x, y, weight, bias = (
        standard_normal(30, 4),
        standard_normal(30, 4, seed=1),
        standard_normal(4, 3, seed=2),
        standard_normal(3, seed=3),
    )
    zero = torch.zeros_like(bias)
    linear = affine(x, weight, zero) + affine(y, weight, zero) - affine(x + y, weight, zero)
    difference = affine(x, weight, bias) + affine(y, weight, bias) - affine(x + y, weight, bias)
    return all_of(
        linear_without_bias=close(linear, 0.0, atol=1e-14),
        difference_is_the_bias=close(difference, bias, atol=1e-14),
        bias_is_not_zero=greater_equal(bias.abs().max(), 0.1),
    )


@claim("D1.0.3", "Z5.3")
def a_stack_of_affine_layers_is_one_affine_layer() -> Evidence:
    """The merged layer equals the stack, its rank is the narrowest width; with a ReLU this fails (Diehl sec. 1)."""
    torch.manual_seed(0)
    stack = mlp((8, 12, 3, 10, 6), activation=identity).double()
    merged, x = merge_affine_layers(stack), standard_normal(100, 8)
    first, second = list(stack)[:2]
    assert isinstance(first, Dense)
    assert isinstance(second, Dense)
    by_hand = x @ (first.weight @ second.weight) + (first.bias @ second.weight + second.bias)
    relu_network = mlp((8, 12, 6), activation=relu).double()
    design = torch.cat([x, torch.ones(100, 1, dtype=torch.float64)], 1)
    residual = relu_network(x) - design @ torch.linalg.lstsq(design, relu_network(x)).solution  # best affine map
    return all_of(
        same_map=close(merged(x), stack(x), atol=1e-14),
        two_by_hand=close(merge_affine_layers([first, second])(x), by_hand, atol=1e-14),
        rank=close(torch.linalg.matrix_rank(merged.weight), 3),
        relu_network_is_not_affine=greater_equal(residual.abs().max(), 0.01),
    )


@claim("C-07", "D1.0.3")
def two_factors_take_a_different_step() -> Evidence:
    """A step on W₁, W₂ changes W₁W₂ by −η (G W₂ᵀW₂ + W₁W₁ᵀ G), a step on one matrix by −η G (Diehl sec. 1)."""
    target, first, second, rate = (
        standard_normal(6, 6),
        standard_normal(6, 4, seed=1),
        standard_normal(4, 6, seed=2),
        1e-6,
    )

    def loss(weight: Tensor) -> Tensor:
        return (weight - target).square().sum() / 2  # for white inputs

    g = grad(loss)(first @ second)
    gradients = grad(lambda pair: loss(pair[0] @ pair[1]))((first, second))
    updated = (first - rate * gradients[0]) @ (second - rate * gradients[1])
    step = (updated - first @ second) / -rate
    cosine = torch.cosine_similarity(step.flatten(), g.flatten(), dim=0)
    layers = mlp((6, 4, 6), activation=identity).double()
    with torch.no_grad():
        for index, factor in enumerate((first, second)):
            layers.get_parameter(f"{index}.weight").copy_(factor)
    minimal_loss = torch.linalg.svdvals(target)[4:].square().sum() / 2
    return all_of(
        step=close(step, g @ second.T @ second + first @ first.T @ g, atol=1e-3),
        different_direction=less_equal(cosine, 0.95),
        merged=close(merge_affine_layers(layers).weight, first @ second, atol=1e-13),
        bottleneck_bounds_the_loss=greater_equal(loss(first @ second), minimal_loss),
    )


@claim("D1.0.11", "Z5.2")
def a_dense_layer_is_a_loop_over_coordinates() -> Evidence:
    """Dense(x)_i = σ(Σ_j A_ij x_j + b_i) with A = Wᵀ; two layers are O = σ(X W₁ + b₁) W₂ + b₂ (Diehl eq. 1)."""
    torch.manual_seed(0)
    layer, x = Dense(4, 3, activation=relu).double(), standard_normal(1, 4)[0]
    a, b = layer.weight.detach().mT, layer.bias.detach()
    loop = [max(0.0, float(sum(a[i, j] * x[j] for j in range(4)) + b[i])) for i in range(3)]
    network, inputs = mlp((4, 4, 3)).double(), standard_normal(20, 4)
    w1, b1, w2, b2 = network.parameters()
    torch_network = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    torch_network.load_state_dict({"0.weight": w1.mT, "0.bias": b1, "2.weight": w2.mT, "2.bias": b2})
    return all_of(
        coordinates=close(layer(x), torch.tensor(loop), atol=1e-15),
        by_hand=close(network(inputs), relu(inputs @ w1 + b1) @ w2 + b2, atol=1e-14),
        torch_sequential=close(network(inputs), torch_network(inputs), atol=1e-14),
        representation=close(layer_outputs(network, inputs)[0], relu(inputs @ w1 + b1), atol=1e-14),
    )


@claim("D1.0.13")
def depth_and_width_of_a_network() -> Evidence:
    """A 3-8-5-2 network has depth 3, two hidden layers, width 8 and 4·8 + 9·5 + 6·2 parameters (Diehl sec. 1)."""
    measured = architecture(mlp((3, 8, 5, 2)))
    torch_network = architecture(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2)))
    return all_of(
        depth=close(measured.depth, 3),
        hidden_layers=close(measured.hidden_layers, 2),
        width=close(measured.width, 8),
        parameters=close(measured.parameters, 4 * 8 + 9 * 5 + 6 * 2),
        same_for_torch=close(float(measured == torch_network), 1.0),
    )


@erratum(
    "D1.0.13",
    printed="the depth is n, and also n − 1",
    right="n layers have weights and n − 1 are hidden; region counts depend on the hidden ones",
)
def depth_has_two_meanings() -> Correction:
    """A 2-5-1 network has the regions of one hidden layer, not of two as depth n would imply (Diehl sec. 1)."""
    torch.manual_seed(0)
    network = mlp((2, 5, 1)).double()
    measured = architecture(network)
    weight, bias = network.get_parameter("0.weight").detach(), network.get_parameter("0.bias").detach()
    regions = count_regions(weight, bias)
    return Correction(
        printed=greater_equal(regions, max_linear_regions(measured.depth, inputs=2, width=5)),
        corrected=close(regions, max_linear_regions(measured.hidden_layers, inputs=2, width=5)),
    )


def max_linear_regions(hidden: int, *, inputs: int, width: int) -> int:
    """The maximum number of linear regions of networks with this many hidden layers (Diehl thm. 1.7)."""
    regions: int = (width // inputs) ** (inputs * (hidden - 1)) * sum(comb(width, j) for j in range(inputs + 1))
    return regions


def count_regions(weight: Tensor, bias: Tensor) -> int:
    """The regions into which the lines x·w_i + b_i = 0 divide the plane: those around their pairwise crossings."""
    patterns = set()
    for pair in combinations(range(weight.shape[1]), 2):
        lines = weight[:, list(pair)]
        for signs in torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64):
            point = torch.linalg.solve(lines.mT, 1e-6 * signs - bias[list(pair)])
            patterns.add(tuple((affine(point, weight, bias) > 0).tolist()))
    return len(patterns)
