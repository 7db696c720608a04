"""Claims about random initialisation and signal propagation in deep networks (book sec. 3.4, Zhao sec. 5)."""

from math import exp, log, sqrt

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.layers.activations import Activation, identity, relu, sigmoid, sigmoid_derivative, tanh
from parnassus.layers.dense import Dense, Initialiser, fan_in_uniform, layer_outputs, mlp
from parnassus.layers.initialisation import (
    GAINS,
    he_normal,
    he_uniform,
    normal_initialiser,
    variance_preserving_gain,
    xavier_normal,
    xavier_uniform,
    xavier_variance,
)

DEPTH = 50
EULER = 0.5772156649015329


def second_moment_factors(
    activation: Activation, initialise: Initialiser, *, width: int = 256, draws: int = 4
) -> tuple[Tensor, Tensor]:
    """Factors per layer of the second moments of the pre-activations and of their gradients.

    Fifty layers of equal width, normal inputs of second moment 1; the geometric mean over layers and draws.
    """
    forward, backward = [], []
    for seed in range(draws):
        torch.manual_seed(seed)
        network = mlp([width] * (DEPTH + 1), activation=activation, initialise=initialise).double()
        h = torch.randn(32, width, dtype=torch.float64, requires_grad=True)
        outputs = [h, *layer_outputs(network, h)]
        gradients = torch.autograd.grad(outputs[-1], [h, outputs[-2]], grad_outputs=torch.randn_like(outputs[-1]))
        forward.append((outputs[-1].square().mean() / h.square().mean()).log() / DEPTH)
        backward.append((gradients[0].square().mean() / gradients[1].square().mean()).log() / (DEPTH - 1))
    return torch.stack(forward).mean().exp(), torch.stack(backward).mean().exp()


@claim("B3.4-1", "Z5.9", "Z5.10")
def a_wrong_weight_scale_changes_signals_exponentially() -> Evidence:
    """With weight variance s/n a ReLU layer scales second moments by s/2 in both passes (book sec. 3.4)."""
    factors = {s: second_moment_factors(relu, he_normal(sqrt(s))) for s in (0.5, 2.0, 4.0)}
    last = 2 ** (-1 / DEPTH)  # correction: no ReLU halves the output of the last layer
    corrected = {s: (forward * last, backward) for s, (forward, backward) in factors.items()}
    return all_of(
        vanishing=close(torch.stack(corrected[0.5]), 0.25, rtol=0.05),
        preserved=close(torch.stack(corrected[2.0]), 1.0, rtol=0.05),
        exploding=close(torch.stack(corrected[4.0]), 2.0, rtol=0.05),
        ratio_after_fifty_layers=greater_equal((factors[4.0][0] / factors[0.5][0]) ** DEPTH, 1e40),
    )


@claim("Z5.10", "B3.4-3")
def the_default_initialisation_makes_deep_signals_vanish() -> Evidence:
    """The default of torch, uniform on ±1/√n, has variance 1/(3n): a ReLU layer keeps one sixth (Zhao sec. 5)."""

    def without_bias(weight: Tensor, bias: Tensor) -> None:
        fan_in_uniform(weight, bias)
        nn.init.zeros_(bias)

    torch.manual_seed(0)
    linear = nn.Linear(400, 600)
    forward, backward = second_moment_factors(relu, without_bias)
    tiny, unit = (second_moment_factors(relu, normal_initialiser(std), draws=2)[1] for std in (0.01, 1.0))
    return all_of(
        variance=close(linear.weight.var(), 1 / (3 * 400), rtol=0.02),
        forward=close(forward * 2 ** (-1 / DEPTH), 1 / 6, rtol=0.05),
        backward=close(backward, 1 / 6, rtol=0.05),
        std_0_01_vanishes_faster=close(tiny, 256 * 1e-4 / 2, rtol=0.1),
        std_1_explodes=close(unit, 256 / 2, rtol=0.1),
        three_layers_keep_signals=greater_equal(forward**3, 1e-3),
    )


@claim("B3.4-2", "Z5.9")
def xavier_variance_equals_torch() -> Evidence:
    """Variance gain² · 2/(in + out), normal or uniform, as in nn.init (book sec. 3.4)."""
    torch.manual_seed(0)
    torch_weight = nn.init.xavier_normal_(torch.empty(600, 400), gain=5 / 3)
    weight = Dense(400, 600, initialise=xavier_normal(5 / 3)).weight
    uniform = Dense(400, 600, initialise=xavier_uniform(5 / 3)).weight.detach()
    return all_of(
        formula=close(weight.var(), 25 / 9 * 2 / 1_000, rtol=0.015),
        torch_init=close(weight.var(), torch_weight.var(), rtol=0.015),
        uniform=close(uniform.var(), xavier_variance(400, 600, 5 / 3), rtol=0.015),
        bound=close(uniform.abs().max(), 5 / 3 * sqrt(6 / 1_000), rtol=1e-3),
    )


@erratum("B3.4-2", printed="σ² = gain · 2/(in + out)", right="σ² = gain² · 2/(in + out)")
def the_gain_is_squared() -> Correction:
    """Without the square a ReLU layer keeps 0.71 of the second moment, and fifty keep 3·10⁻⁸ (book sec. 3.4)."""
    gain = GAINS[relu]
    printed = torch.stack(second_moment_factors(relu, xavier_normal(sqrt(gain))))
    corrected = torch.stack(second_moment_factors(relu, xavier_normal(gain)))
    torch.manual_seed(0)
    torch_variance = nn.init.xavier_normal_(torch.empty(500, 500), gain=gain).var()
    return Correction(
        printed=all_of(
            torch_init=close(gain * 2 / 1_000, torch_variance, rtol=0.02),
            preserves_second_moment=close(printed, 1.0, rtol=0.05),
        ),
        corrected=all_of(
            torch_init=close(xavier_variance(500, 500, gain), torch_variance, rtol=0.02),
            preserves_second_moment=close(corrected, 1.0, rtol=0.05),
            printed_factor=close(printed[1], 1 / sqrt(2), rtol=0.05),
        ),
    )


@claim("B3.4-3")
def gain_one_suits_identity_and_root_two_suits_relu() -> Evidence:
    """The preserving gain keeps the second moment from layer to layer, normal or uniform (book sec. 3.4)."""
    schemes: dict[str, tuple[Activation, Initialiser]] = {
        "identity": (identity, xavier_normal(1.0)),
        "relu_normal": (relu, xavier_normal(sqrt(2))),
        "relu_uniform": (relu, xavier_uniform(sqrt(2))),
        "he_normal": (relu, he_normal()),
        "he_uniform": (relu, he_uniform()),
    }
    factors = {name: torch.stack(second_moment_factors(*scheme)) for name, scheme in schemes.items()}
    return all_of(**{name: close(factor, 1.0, rtol=0.05) for name, factor in factors.items()})


@claim("B3.4-2", "B3.4-3")
def some_listed_gains_do_not_preserve_variance() -> Evidence:
    """1/√E σ² is √2 for ReLU as listed, but 1.59 for tanh, not 5/3, and 1.85 for the sigmoid, not 1 (book sec. 3.4)."""
    gains = {
        name: variance_preserving_gain(each)
        for name, each in (("tanh", tanh), ("sigmoid", sigmoid), ("selu", torch.selu))
    }
    factor = second_moment_factors(torch.selu, xavier_normal(1.0))[0]
    return all_of(
        relu=close(variance_preserving_gain(relu), GAINS[relu], rtol=1e-9),
        identity=close(variance_preserving_gain(identity), GAINS[identity], rtol=1e-9),
        tanh=close(gains["tanh"], 1.5925, atol=1e-4),
        sigmoid=close(gains["sigmoid"], 1.8462, atol=1e-4),
        selu=close(gains["selu"], 1.0, atol=1e-6),
        selu_preserves_with_gain_one=close(factor, 1.0, rtol=0.05),
    )


@claim("Z5.9")
def products_of_random_matrices_explode() -> Evidence:
    """A product of a hundred 4×4 N(0, 1) matrices stretches vectors by e^0.558 each, 10²⁴ in total (Zhao sec. 5).

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
    torch.manual_seed(0)
    deep = []
    for _ in range(20):
        network = mlp((4,) * 101, activation=identity, initialise=normal_initialiser(1.0)).double()
        outputs = layer_outputs(network, torch.randn(1, 4, dtype=torch.float64))
        deep.append((outputs[-1].norm() / outputs[0].norm()).log().detach() / 99)
    return all_of(
        log_growth_per_matrix=close(growth.mean() / 100, predicted, atol=0.01),
        typical_stretch=greater_equal(growth.median().exp(), 1e22),
        formula=close(exp(100 * predicted), 1.7e24, rtol=0.05),
        network_of_a_hundred_layers=close(torch.stack(deep).mean(), predicted, atol=0.03),
    )


@claim("Z5.9")
def sigmoids_shrink_gradients_at_least_fourfold() -> Evidence:
    """The sigmoid has derivative at most ¼ and below 10⁻³ beyond ±8: gradients vanish with depth (Zhao sec. 5)."""
    x = torch.linspace(-8, 8, 1_601, dtype=torch.float64)
    _, backward = second_moment_factors(sigmoid, xavier_normal(1.0))
    return all_of(
        largest_derivative=close(sigmoid_derivative(x).max(), 0.25),
        at_the_ends=less_equal(sigmoid_derivative(x[[0, -1]]), 1e-3),
        factor_with_gain_one=less_equal(backward, 1 / 16),
    )


@claim("Z5.9")
def identically_initialised_units_stay_equal() -> Evidence:
    """Hidden units with equal weights get equal gradients and remain equal; random ones differ (Zhao sec. 5)."""

    def constant(weight: Tensor, bias: Tensor) -> None:
        nn.init.constant_(weight, 0.3)
        nn.init.zeros_(bias)

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    y = torch.sin(2 * x[:, :1])
    spreads = []
    for initialise in (constant, xavier_normal()):
        torch.manual_seed(0)
        network = mlp((3, 5, 1), activation=tanh, initialise=initialise).double()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        for _ in range(100):
            optimizer.zero_grad()
            (network(x) - y).square().mean().backward()
            optimizer.step()
        spreads.append(network.get_parameter("0.weight").std(dim=1).max())
    return all_of(constant=less_equal(spreads[0], 1e-14), random=greater_equal(spreads[1], 0.1))
