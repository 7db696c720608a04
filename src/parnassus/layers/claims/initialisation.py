"""Claims about random starts and the signals that pass through them (book sec. 3.4, Zhao sec. 5)."""

from math import exp, log, sqrt

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.layers.activations import Activation, identity, relu, sigmoid, sigmoid_slope, tanh
from parnassus.layers.dense import Dense, Initialiser, layer_outputs, mlp, uniform_by_fan_in
from parnassus.layers.initialisation import (
    GAINS,
    he_normal,
    he_uniform,
    normal_start,
    preserving_gain,
    xavier_normal,
    xavier_uniform,
    xavier_variance,
)

DEPTH = 50
EULER = 0.5772156649015329


def factor_per_layer(
    activation: Activation, initialise: Initialiser, *, width: int = 256, draws: int = 4
) -> tuple[Tensor, Tensor]:
    """By what a layer multiplies the second moment of the pre-activations, and that of their gradients, on average.

    Fifty layers of one width with normal inputs, which have second moment 1; the geometric mean over layers and draws.
    """
    forward, backward = [], []
    for seed in range(draws):
        torch.manual_seed(seed)
        network = mlp([width] * (DEPTH + 1), activation=activation, initialise=initialise).double()
        h = torch.randn(32, width, dtype=torch.float64, requires_grad=True)
        outputs = [h, *layer_outputs(network, h)]
        slopes = torch.autograd.grad(outputs[-1], [h, outputs[-2]], grad_outputs=torch.randn_like(outputs[-1]))
        forward.append((outputs[-1].square().mean() / h.square().mean()).log() / DEPTH)
        backward.append((slopes[0].square().mean() / slopes[1].square().mean()).log() / (DEPTH - 1))
    return torch.stack(forward).mean().exp(), torch.stack(backward).mean().exp()


@claim("B3.4-1", "Z5.9", "Z5.10")
def a_wrong_scale_changes_signals_geometrically() -> Evidence:
    """With weights of variance s/n a ReLU layer multiplies second moments by s/2, both ways (book sec. 3.4)."""
    found = {share: factor_per_layer(relu, he_normal(sqrt(share))) for share in (0.5, 2.0, 4.0)}
    last = 2 ** (-1 / DEPTH)  # the last layer has no ReLU that would halve its output
    shown = {share: (forward * last, backward) for share, (forward, backward) in found.items()}
    return all_of(
        fades=close(torch.stack(shown[0.5]), 0.25, rtol=0.05),
        stays=close(torch.stack(shown[2.0]), 1.0, rtol=0.05),
        blows_up=close(torch.stack(shown[4.0]), 2.0, rtol=0.05),
        after_fifty_layers=at_least((found[4.0][0] / found[0.5][0]) ** DEPTH, 1e40),
    )


@claim("Z5.10", "B3.4-3")
def the_default_start_lets_deep_signals_fade() -> Evidence:
    """The default of torch, uniform on ±1/√n, has variance 1/(3n): a ReLU layer keeps a sixth (Zhao sec. 5)."""

    def without_bias(weight: Tensor, bias: Tensor) -> None:
        uniform_by_fan_in(weight, bias)
        nn.init.zeros_(bias)

    torch.manual_seed(0)
    linear = nn.Linear(400, 600)
    forward, backward = factor_per_layer(relu, without_bias)
    tiny, unit = (factor_per_layer(relu, normal_start(std), draws=2)[1] for std in (0.01, 1.0))
    return all_of(
        variance=close(linear.weight.var(), 1 / (3 * 400), rtol=0.02),
        forward=close(forward * 2 ** (-1 / DEPTH), 1 / 6, rtol=0.05),
        backward=close(backward, 1 / 6, rtol=0.05),
        tiny_weights_fade_faster=close(tiny, 256 * 1e-4 / 2, rtol=0.1),
        unit_weights_blow_up=close(unit, 256 / 2, rtol=0.1),
        three_layers_still_learn=at_least(forward**3, 1e-3),
    )


@claim("B3.4-2", "Z5.9")
def xavier_has_the_variance_of_torch() -> Evidence:
    """Variance gain² · 2/(in + out), normal or uniform, as in nn.init (book sec. 3.4)."""
    torch.manual_seed(0)
    theirs = nn.init.xavier_normal_(torch.empty(600, 400), gain=5 / 3)
    ours = Dense(400, 600, initialise=xavier_normal(5 / 3)).weight
    uniform = Dense(400, 600, initialise=xavier_uniform(5 / 3)).weight.detach()
    return all_of(
        formula=close(ours.var(), 25 / 9 * 2 / 1_000, rtol=0.015),
        torch_start=close(ours.var(), theirs.var(), rtol=0.015),
        uniform=close(uniform.var(), xavier_variance(400, 600, 5 / 3), rtol=0.015),
        bound=close(uniform.abs().max(), 5 / 3 * sqrt(6 / 1_000), rtol=1e-3),
    )


@erratum("B3.4-2", printed="σ² = gain · 2/(in + out)", right="σ² = gain² · 2/(in + out)")
def the_gain_is_squared() -> Correction:
    """Without the square a ReLU layer keeps 0.71 of the second moment, and fifty keep 3·10⁻⁸ (book sec. 3.4)."""
    gain = GAINS[relu]
    printed = torch.stack(factor_per_layer(relu, xavier_normal(sqrt(gain))))
    right = torch.stack(factor_per_layer(relu, xavier_normal(gain)))
    torch.manual_seed(0)
    torch_variance = nn.init.xavier_normal_(torch.empty(500, 500), gain=gain).var()
    return Correction(
        printed=all_of(
            torch_start=close(gain * 2 / 1_000, torch_variance, rtol=0.02), keeps_signals=close(printed, 1.0, rtol=0.05)
        ),
        corrected=all_of(
            torch_start=close(xavier_variance(500, 500, gain), torch_variance, rtol=0.02),
            keeps_signals=close(right, 1.0, rtol=0.05),
            what_is_lost=close(printed[1], 1 / sqrt(2), rtol=0.05),
        ),
    )


@claim("B3.4-3")
def gain_one_suits_the_identity_and_root_two_relu() -> Evidence:
    """With the preserving gain the second moment stays from layer to layer, normal or uniform (book sec. 3.4)."""
    starts: dict[str, tuple[Activation, Initialiser]] = {
        "identity": (identity, xavier_normal(1.0)),
        "relu_normal": (relu, xavier_normal(sqrt(2))),
        "relu_uniform": (relu, xavier_uniform(sqrt(2))),
        "he_normal": (relu, he_normal()),
        "he_uniform": (relu, he_uniform()),
    }
    factors = {name: torch.stack(factor_per_layer(*start)) for name, start in starts.items()}
    return all_of(**{name: close(factor, 1.0, rtol=0.05) for name, factor in factors.items()})


@claim("B3.4-2", "B3.4-3")
def some_gains_of_the_list_are_not_the_preserving_ones() -> Evidence:
    """1/√E σ² is √2 for ReLU as listed, but 1.59 for tanh, not 5/3, and 1.85 for the sigmoid, not 1 (book sec. 3.4)."""
    gains = {name: preserving_gain(each) for name, each in (("tanh", tanh), ("sigmoid", sigmoid), ("selu", torch.selu))}
    with_gain = factor_per_layer(torch.selu, xavier_normal(1.0))[0]
    return all_of(
        relu=close(preserving_gain(relu), GAINS[relu], rtol=1e-9),
        identity=close(preserving_gain(identity), GAINS[identity], rtol=1e-9),
        tanh=close(gains["tanh"], 1.5925, atol=1e-4),
        sigmoid=close(gains["sigmoid"], 1.8462, atol=1e-4),
        selu=close(gains["selu"], 1.0, atol=1e-6),
        selu_keeps_signals_with_one=close(with_gain, 1.0, rtol=0.05),
    )


@claim("Z5.9")
def products_of_random_matrices_blow_up() -> Evidence:
    """A hundred 4×4 matrices of N(0, 1) entries stretch by e^0.558 each, 10²⁴ in all (Zhao sec. 5).

    The growth rate of Gaussian products is ½ (ln 2 + ψ(d/2)); for d = 4, ψ(2) = 1 − 0.5772.
    """
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(400, 4, 1, generator=generator, dtype=torch.float64)
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    growth = torch.zeros(400, dtype=torch.float64)
    for _ in range(100):
        vectors = torch.randn(400, 4, 4, generator=generator, dtype=torch.float64) @ vectors
        length = vectors.norm(dim=1, keepdim=True)
        growth, vectors = growth + length.log().flatten(), vectors / length
    predicted = (log(2) + 1 - EULER) / 2
    return all_of(
        growth_a_matrix=close(growth.mean() / 100, predicted, atol=0.01),
        typical_stretch=at_least(growth.median().exp(), 1e22),
        formula=close(exp(100 * predicted), 1.7e24, rtol=0.05),
    )


@claim("Z5.9")
def sigmoids_shrink_gradients_by_four_or_more() -> Evidence:
    """The slope of the sigmoid is at most ¼ and below 10⁻³ beyond ±8: gradients die in deep stacks (Zhao sec. 5)."""
    x = torch.linspace(-8, 8, 1_601, dtype=torch.float64)
    _, backward = factor_per_layer(sigmoid, xavier_normal(1.0))
    return all_of(
        largest=close(sigmoid_slope(x).max(), 0.25),
        at_the_ends=at_most(sigmoid_slope(x[[0, -1]]), 1e-3),
        a_layer_of_gain_one=at_most(backward, 1 / 16),
    )


@claim("Z5.9")
def equal_units_stay_equal() -> Evidence:
    """Hidden units that start alike get the same gradients and never part; random ones do (Zhao sec. 5)."""

    def constant(weight: Tensor, bias: Tensor) -> None:
        nn.init.constant_(weight, 0.3)
        nn.init.zeros_(bias)

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    y = torch.sin(2 * x[:, :1])
    apart = []
    for start in (constant, xavier_normal()):
        torch.manual_seed(0)
        network = mlp((3, 5, 1), activation=tanh, initialise=start).double()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        for _ in range(100):
            optimizer.zero_grad()
            (network(x) - y).square().mean().backward()
            optimizer.step()
        apart.append(network.get_parameter("0.weight").std(dim=1).max())
    return all_of(alike=at_most(apart[0], 1e-14), random=at_least(apart[1], 0.1))
