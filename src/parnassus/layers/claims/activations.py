"""Claims about activation functions and their derivatives (book sec. 1.2, Diehl sec. 1, Zhao sec. 5)."""

from collections.abc import Callable
from math import pi, sqrt

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.layers import activations as act
from parnassus.layers.dense import mlp
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.probability import standard_normal


def grid(low: float = -8.0, high: float = 8.0, points: int = 3_201) -> Tensor:
    return torch.linspace(low, high, points, dtype=torch.float64)


def derivative_by_autograd(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    derivatives: Tensor = vmap(grad(function))(x)
    return derivatives


@claim(
    "B1.2-8",
    "B1.2-9",
    "B1.2-10",
    "B1.2-11",
    "B1.2-12",
    "B1.2-13",
    "D1.0.5",
    "D1.0.6",
    "D1.0.7",
    "D1.0.8",
    "D1.0.9",
    "Z5.5",
)
def closed_form_derivatives_agree_with_autograd() -> Evidence:
    """Every activation's derivative in closed form equals automatic differentiation, also at kinks (book sec. 1.2)."""
    x = grid()
    pairs = {
        "step01": (act.heaviside, act.heaviside_derivative),
        "sign_pm1": (act.binary_sign, act.binary_sign_derivative),
        "relu": (act.relu, act.relu_derivative),
        "leaky_relu": (act.leaky_relu, act.leaky_relu_derivative),
        "tanh": (act.tanh, act.tanh_derivative),
        "sigmoid": (act.sigmoid, act.sigmoid_derivative),
        "gelu": (act.gelu, act.gelu_derivative),
        "gelu_tanh": (act.gelu_tanh, act.gelu_tanh_derivative),
        "elu": (act.elu, act.elu_derivative),
        "identity": (act.identity, act.identity_derivative),
    }
    return all_of(
        **{
            name: close(derivative(x), derivative_by_autograd(f, x), atol=1e-14)
            for name, (f, derivative) in pairs.items()
        }
    )


@claim("B1.2-8", "B1.4-16")
def no_gradient_passes_through_a_step_function() -> Evidence:
    """Weights before a step function have gradient exactly 0; only the last layer is trained (book eq. 1.4)."""
    torch.manual_seed(0)
    network = mlp((5, 8, 8, 3), activation=act.heaviside)
    network(torch.randn(16, 5)).square().sum().backward()
    magnitudes = [float(parameter.grad.abs().sum()) for parameter in network.parameters() if parameter.grad is not None]
    return all_of(
        hidden=close(torch.tensor(magnitudes[:4]), 0.0),
        last=greater_equal(min(magnitudes[4:]), 1.0),
        all_have_gradients=close(len(magnitudes), 6),
    )


@claim("B1.2-8")
def sign_denotes_two_functions() -> Evidence:
    """Sign has values {0, 1} in one chapter, {−1, 1} in the next; torch.sign is neither (book eqs. 1.4, 2.11)."""
    x = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    return all_of(
        step=close(act.heaviside(x), torch.heaviside(x, torch.zeros_like(x))),
        two_valued=close(act.binary_sign(x), torch.tensor([-1.0, -1.0, 1.0])),
        torch_sign_has_three_values=close(torch.sign(x), torch.tensor([-1.0, 0.0, 1.0])),
        derivative_almost_everywhere=close(act.heaviside_derivative(grid()), 0.0),
    )


@claim("B1.2-9")
def relu_deactivates_half_of_the_units() -> Evidence:
    """With pre-activations symmetric about 0, half of the activations are exactly 0 (book sec. 1.2)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 100, generator=generator)
    weight = torch.randn(100, 400, generator=generator)
    inactive = (act.relu(x @ weight) == 0).double().mean()
    shifted = (act.relu(x @ weight + 10) == 0).double().mean()  # a positive bias breaks the symmetry
    return all_of(
        agrees_with_torch=close(act.relu(grid()), functional.relu(grid())),
        symmetric=close(inactive, 0.5, atol=0.01),
        fewer_with_positive_bias=less_equal(shifted, 0.25),
    )


@claim("B1.2-10", "D1.0.5", "Z5.6")
def tanh_is_a_centred_sigmoid() -> Evidence:
    """Tanh is odd, lies in (−1, 1) and equals 2 sigmoid(2x) − 1; its printed quotient overflows (book eq. 1.6)."""
    x = grid()
    large = torch.tensor([800.0], dtype=torch.float64)
    printed = (large.exp() - (-large).exp()) / (large.exp() + (-large).exp())
    return all_of(
        quotient=close(act.tanh(x), (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()), atol=1e-14),
        sigmoid=close(act.tanh(x), 2 * act.sigmoid(2 * x) - 1, atol=1e-14),
        odd=close(act.tanh(-x), -act.tanh(x)),
        inside=less_equal(act.tanh(x).abs(), 1 - 1e-8),
        finite_at_800=close(act.tanh(large), 1.0),
        quotient_is_nan_at_800=close(printed.isnan().double(), 1.0),
    )


@claim("B1.2-11", "D1.0.6", "Z5.5")
def the_sigmoid_has_maximal_slope_one_quarter() -> Evidence:
    """The sigmoid maps to (0, 1), sigmoid(−x) = 1 − sigmoid(x), with maximum slope ¼ at 0 (book eq. 1.7)."""
    x = grid()
    slope = act.sigmoid_derivative(x)
    return all_of(
        formula=close(act.sigmoid(x), 1 / (1 + torch.exp(-x)), atol=1e-15),
        half_at_zero=close(act.sigmoid(torch.zeros(())), 0.5),
        symmetry=close(act.sigmoid(-x), 1 - act.sigmoid(x), atol=1e-15),
        derivative_formula=close(slope, act.sigmoid(x) * (1 - act.sigmoid(x)), atol=1e-15),
        largest_slope=close(slope.max(), 0.25),
        attained_at_zero=close(x[slope.argmax()], 0.0, atol=1e-12),
        positive_at_minus_700=greater_equal(act.sigmoid(torch.tensor(-700.0, dtype=torch.float64)), 1e-305),
    )


@erratum("Z5.6", printed="(1 − e⁻²ˣ)/(1 + e⁻²ˣ), evaluated as printed", right="an equivalent form without ∞/∞")
def the_printed_tanh_is_nan_for_large_negative_inputs() -> Correction:
    """The quotient is correct near 0, but ∞/∞ for x below −355 in double precision (Zhao sec. 5)."""
    x = grid(-800.0, 800.0, 401)
    printed = (1 - torch.exp(-2 * x)) / (1 + torch.exp(-2 * x))
    is_finite = x > -354
    single = torch.tensor([-44.0, -45.0])  # single precision overflows earlier
    quotient = (1 - torch.exp(-2 * single)) / (1 + torch.exp(-2 * single))
    return Correction(
        printed=close(printed, act.tanh(x), atol=1e-14),
        corrected=all_of(
            where_it_is_finite=close(printed[is_finite], act.tanh(x[is_finite]), atol=1e-14),
            tanh_where_it_is_nan=close(act.tanh(x[~is_finite]), -1.0),
            single_precision_fails_beyond_44=close(quotient.isnan().double(), torch.tensor([0.0, 1.0])),
            slope_at_zero=close(act.tanh_derivative(torch.zeros(())), 1.0),
        ),
    )


@claim("B1.2-12")
def leaky_relu_recovers_where_relu_is_dead() -> Evidence:
    """A unit with negative pre-activations on all data is never updated with ReLU, unlike leaky ReLU (book eq. 1.8)."""
    x = torch.linspace(0, 1, 21, dtype=torch.float64)
    start = torch.tensor([-1.0, -0.5], dtype=torch.float64)  # w x + b < 0 on all of [0, 1]

    def mean_squared_error_of(sigma: act.Activation) -> Callable[[Tensor], Tensor]:
        return lambda theta: (sigma(theta[0] * x + theta[1]) - (x + 1)).square().mean()

    relu_path = gradient_descent(mean_squared_error_of(act.relu), start, learning_rate=0.5, steps=500)
    leaky_path = gradient_descent(mean_squared_error_of(act.leaky_relu), start, learning_rate=0.5, steps=500)
    return all_of(
        agrees_with_torch=close(act.leaky_relu(grid()), functional.leaky_relu(grid()), atol=1e-15),
        relu_is_constant=close(relu_path[-1], start),
        leaky_fits=less_equal(mean_squared_error_of(act.leaky_relu)(leaky_path[-1]), 1e-6),
    )


@claim("D1.0.7")
def gelu_is_an_expected_random_gate() -> Evidence:
    """x·P[N(0, 1) ≤ x] by sampling is x Φ(x); the tanh form deviates by at most 4.73e−4 (Diehl sec. 1)."""
    draws = standard_normal(1_000_000)
    x = torch.linspace(-3, 3, 25, dtype=torch.float64)
    fractions = torch.searchsorted(draws.sort().values, x, right=True) / len(draws)
    deviation = (act.gelu_tanh(grid()) - act.gelu(grid())).abs()
    return all_of(
        sampled=close(x * fractions, act.gelu(x), atol=5e-3),
        torch_tanh_form=close(act.gelu_tanh(x), functional.gelu(x, approximate="tanh"), atol=1e-14),
        largest_deviation=close(deviation.max(), 4.73e-4, atol=1e-6),
        attained_at=close(grid()[deviation.argmax()].abs(), 2.70, atol=0.01),
    )


@claim("D1.0.8")
def elu_is_differentiable_and_above_minus_one() -> Evidence:
    """Both one-sided derivatives at 0 are 1, and ELU + 1 > 0, as linear attention requires (Diehl sec. 1)."""
    h = torch.tensor([1e-4, 1e-6], dtype=torch.float64)
    points = torch.tensor([-30.0, -5.0, 5.0, 2_000.0], dtype=torch.float64)
    return all_of(
        agrees_with_torch=close(act.elu(grid()), functional.elu(grid()), atol=1e-15),
        from_the_left=close(act.elu(-h) / -h, 1.0, atol=1e-4),
        from_the_right=close(act.elu(h) / h, 1.0),
        positive=greater_equal(act.elu(points) + 1, 1e-14),
        derivative_is_value_plus_one=close(act.elu_derivative(points[:2]), act.elu(points[:2]) + 1, atol=1e-15),
    )


@claim("B1.2-13")
def gelu_has_one_minimum() -> Evidence:
    """GELU has one minimum, −0.169971 at −0.751792, also its largest distance from ReLU (book eq. 1.9)."""
    low, high = -2.0, 0.0
    for _ in range(60):  # bisection on the derivative
        middle = (low + high) / 2
        falling = float(act.gelu_derivative(torch.tensor(middle, dtype=torch.float64))) < 0
        low, high = (middle, high) if falling else (low, middle)
    x = grid(points=160_001)
    distance = (act.gelu(x) - act.relu(x)).abs()
    sign_changes = torch.diff(torch.sign(act.gelu_derivative(grid(-5.0, 5.0, 10_000)))).abs().sum() / 2
    return all_of(
        agrees_with_torch=close(act.gelu(x), functional.gelu(x), atol=1e-14),
        minimiser=close(low, -0.751792, atol=5e-7),
        minimum=close(act.gelu(torch.tensor(low, dtype=torch.float64)), -0.169971, atol=5e-7),
        one_sign_change=close(sign_changes, 1.0),
        distance_from_relu=close(distance.max(), 0.169971, atol=5e-7),
        distance_attained_at=close(x[distance.argmax()].abs(), 0.751792, atol=1e-4),
    )


@claim("B1.2-13")
def the_error_function_equals_its_integral() -> Evidence:
    """The erf used in GELU agrees with a series and a quadrature to 1e−12 (book eq. 1.10)."""
    x = torch.linspace(-4, 4, 81, dtype=torch.float64)
    term = x.clone()  # erf(x) = 2/√π exp(−x²) Σ_n 2ⁿ x²ⁿ⁺¹ / (2n+1)!!: no cancellation
    series = term.clone()
    for n in range(1, 120):
        term = term * 2 * x.square() / (2 * n + 1)
        series = series + term
    series = 2 / sqrt(pi) * torch.exp(-x.square()) * series
    t = torch.linspace(0, 1, 4_001, dtype=torch.float64)[:, None] * x
    quadrature = 2 / sqrt(pi) * _simpson(torch.exp(-t.square())) * x
    return all_of(
        series=close(series, torch.erf(x), atol=1e-12),
        quadrature=close(quadrature, torch.erf(x), atol=1e-12),
        gelu=close(act.gelu(x), x / 2 * (1 + erf_maclaurin(x / sqrt(2))), atol=1e-12),
    )


def erf_maclaurin(x: Tensor) -> Tensor:
    """The erf by its Maclaurin series, 2/√π Σ_n (−1)ⁿ x²ⁿ⁺¹ / (n! (2n+1)), accurate for moderate x."""
    power, total = x.clone(), x.clone()
    for n in range(1, 80):
        power = -power * x.square() / n
        total = total + power / (2 * n + 1)
    return 2 / sqrt(pi) * total


def _simpson(values: Tensor) -> Tensor:
    """Simpson's rule for ∫₀¹ of equally spaced values along the first axis, odd in number."""
    weights = torch.full((len(values),), 2.0, dtype=values.dtype)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return weights @ values / (3 * (len(values) - 1))
