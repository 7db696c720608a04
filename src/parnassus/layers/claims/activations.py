"""Claims about activation functions and their derivatives (book sec. 1.2, Diehl sec. 1, Zhao sec. 5)."""

from collections.abc import Callable
from math import pi, sqrt

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.layers import activations as act
from parnassus.layers.dense import mlp
from parnassus.optim.gradient_descent import gradient_descent


def grid(low: float = -8.0, high: float = 8.0, points: int = 3_201) -> Tensor:
    return torch.linspace(low, high, points, dtype=torch.float64)


def slope_by_autograd(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    slopes: Tensor = vmap(grad(function))(x)
    return slopes


@claim("B1.2-8", "B1.2-9", "B1.2-10", "B1.2-11", "B1.2-12", "B1.2-13", "D1.0.6", "D1.0.7", "D1.0.8", "D1.0.9", "Z5.5")
def each_slope_is_the_derivative() -> Evidence:
    """Every activation's slope in closed form equals automatic differentiation, corners included (book sec. 1.2)."""
    x = grid()
    pairs = {
        "step01": (act.step01, act.step01_slope),
        "sign_pm1": (act.sign_pm1, act.sign_pm1_slope),
        "relu": (act.relu, act.relu_slope),
        "leaky_relu": (act.leaky_relu, act.leaky_relu_slope),
        "tanh": (act.tanh, act.tanh_slope),
        "sigmoid": (act.sigmoid, act.sigmoid_slope),
        "gelu": (act.gelu, act.gelu_slope),
        "gelu_by_tanh": (act.gelu_by_tanh, act.gelu_by_tanh_slope),
        "elu": (act.elu, act.elu_slope),
        "identity": (act.identity, act.identity_slope),
    }
    return all_of(**{name: close(slope(x), slope_by_autograd(f, x), atol=1e-14) for name, (f, slope) in pairs.items()})


@claim("B1.2-8", "B1.4-16")
def no_gradient_passes_a_step() -> Evidence:
    """Below a step every weight has gradient exactly 0, so only the last layer can learn (book eq. 1.4)."""
    torch.manual_seed(0)
    network = mlp((5, 8, 8, 3), activation=act.step01)
    network(torch.randn(16, 5)).square().sum().backward()
    sizes = [float(parameter.grad.abs().sum()) for parameter in network.parameters() if parameter.grad is not None]
    return all_of(
        hidden=close(torch.tensor(sizes[:4]), 0.0), last=at_least(min(sizes[4:]), 1.0), all_present=close(len(sizes), 6)
    )


@erratum("B1.2-8", printed="Sign is torch's sign", right="Sign of eq. 1.4 is heaviside(x, 0); eq. 2.11 is another")
def sign_names_two_functions() -> Correction:
    """Sign has values {0, 1} in one chapter and {−1, 1} in the next; torch.sign is neither (book eqs. 1.4, 2.11)."""
    x = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    return Correction(
        printed=all_of(step=close(act.step01(x), torch.sign(x)), two_valued=close(act.sign_pm1(x), torch.sign(x))),
        corrected=all_of(
            step=close(act.step01(x), torch.heaviside(x, torch.zeros_like(x))),
            two_valued=close(act.sign_pm1(x), torch.tensor([-1.0, -1.0, 1.0])),
            zero_at_zero=close(act.step01(x[1]), 0.0),
        ),
    )


@claim("B1.2-9")
def relu_silences_half_of_the_units() -> Evidence:
    """With pre-activations symmetric about 0, half of the activations are exactly 0 (book sec. 1.2)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 100, generator=generator)
    weight = torch.randn(100, 400, generator=generator)
    silent = (act.relu(x @ weight) == 0).double().mean()
    shifted = (act.relu(x @ weight + 10) == 0).double().mean()  # biased upwards, the symmetry is gone
    return all_of(
        agrees_with_torch=close(act.relu(grid()), functional.relu(grid())),
        symmetric=close(silent, 0.5, atol=0.01),
        not_when_shifted=at_most(shifted, 0.25),
    )


@claim("B1.2-10", "D1.0.5", "Z5.6")
def tanh_is_a_centred_sigmoid() -> Evidence:
    """The tanh is odd, within (−1, 1) and 2 sigmoid(2x) − 1; its printed quotient overflows (book eq. 1.6)."""
    x = grid()
    far = torch.tensor([800.0], dtype=torch.float64)
    printed = (far.exp() - (-far).exp()) / (far.exp() + (-far).exp())
    return all_of(
        quotient=close(act.tanh(x), (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()), atol=1e-14),
        sigmoid=close(act.tanh(x), 2 * act.sigmoid(2 * x) - 1, atol=1e-14),
        odd=close(act.tanh(-x), -act.tanh(x)),
        inside=at_most(act.tanh(x).abs(), 1 - 1e-8),
        finite_far_out=close(act.tanh(far), 1.0),
        quotient_is_nan_there=close(printed.isnan().double(), 1.0),
    )


@claim("B1.2-11", "D1.0.6", "Z5.5")
def the_sigmoid_is_steepest_at_one_quarter() -> Evidence:
    """The sigmoid maps to (0, 1) with sigmoid(−x) = 1 − sigmoid(x) and slope at most ¼, at 0 (book eq. 1.7)."""
    x = grid()
    slope = act.sigmoid_slope(x)
    return all_of(
        formula=close(act.sigmoid(x), 1 / (1 + torch.exp(-x)), atol=1e-15),
        half_at_zero=close(act.sigmoid(torch.zeros(())), 0.5),
        mirror=close(act.sigmoid(-x), 1 - act.sigmoid(x), atol=1e-15),
        product=close(slope, act.sigmoid(x) * (1 - act.sigmoid(x)), atol=1e-15),
        largest_slope=close(slope.max(), 0.25),
        at_zero=close(x[slope.argmax()], 0.0, atol=1e-12),
        above_zero_far_below=at_least(act.sigmoid(torch.tensor(-700.0, dtype=torch.float64)), 1e-305),
    )


@erratum("Z5.6", printed="(1 − e⁻²ˣ)/(1 + e⁻²ˣ), as it stands", right="the same function in a form without ∞/∞")
def the_printed_tanh_is_not_a_number_far_below() -> Correction:
    """The quotient is right near 0, and ∞/∞ for x below −355 in double precision (Zhao sec. 5)."""
    x = grid(-800.0, 800.0, 401)
    printed = (1 - torch.exp(-2 * x)) / (1 + torch.exp(-2 * x))
    reached = x > -354
    single = torch.tensor([-44.0, -45.0])  # in single precision the exponential overflows sooner
    quotient = (1 - torch.exp(-2 * single)) / (1 + torch.exp(-2 * single))
    return Correction(
        printed=close(printed, act.tanh(x), atol=1e-14),
        corrected=all_of(
            where_it_is_finite=close(printed[reached], act.tanh(x[reached]), atol=1e-14),
            below=close(act.tanh(x[~reached]), -1.0),
            in_single_precision_it_ends_at_44=close(quotient.isnan().double(), torch.tensor([0.0, 1.0])),
            slope_at_zero=close(act.tanh_slope(torch.zeros(())), 1.0),
        ),
    )


@claim("B1.2-12")
def a_leaky_unit_recovers_where_a_relu_is_dead() -> Evidence:
    """A neuron negative on all data never moves as ReLU but learns as leaky ReLU with α = 0.01 (book eq. 1.8)."""
    x = torch.linspace(0, 1, 21, dtype=torch.float64)
    start = torch.tensor([-1.0, -0.5], dtype=torch.float64)  # w x + b < 0 on all of [0, 1]

    def error(sigma: act.Activation) -> Callable[[Tensor], Tensor]:
        return lambda theta: (sigma(theta[0] * x + theta[1]) - (x + 1)).square().mean()

    relu_path = gradient_descent(error(act.relu), start, rate=0.5, steps=500)
    leaky_path = gradient_descent(error(act.leaky_relu), start, rate=0.5, steps=500)
    return all_of(
        agrees_with_torch=close(act.leaky_relu(grid()), functional.leaky_relu(grid()), atol=1e-15),
        relu_never_moves=close(relu_path[-1], start),
        leaky_fits=at_most(error(act.leaky_relu)(leaky_path[-1]), 1e-6),
    )


@claim("D1.0.7")
def gelu_is_a_gate_drawn_by_lot() -> Evidence:
    """x·P[N(0, 1) ≤ x] by sampling is x Φ(x); the tanh form is off by 4.73e−4 at most (Diehl sec. 1)."""
    draws = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.linspace(-3, 3, 25, dtype=torch.float64)
    shares = torch.searchsorted(draws.sort().values, x, right=True) / len(draws)
    gap = (act.gelu_by_tanh(grid()) - act.gelu(grid())).abs()
    return all_of(
        sampled=close(x * shares, act.gelu(x), atol=5e-3),
        tanh_form_is_torchs=close(act.gelu_by_tanh(x), functional.gelu(x, approximate="tanh"), atol=1e-14),
        largest_gap=close(gap.max(), 4.73e-4, atol=1e-6),
        where=close(grid()[gap.argmax()].abs(), 2.70, atol=0.01),
    )


@claim("D1.0.8")
def elu_is_smooth_and_above_minus_one() -> Evidence:
    """Both one-sided slopes at 0 are 1, and ELU + 1 > 0, which linear attention needs (Diehl sec. 1)."""
    h = torch.tensor([1e-4, 1e-6], dtype=torch.float64)
    far = torch.tensor([-30.0, -5.0, 5.0, 2_000.0], dtype=torch.float64)
    return all_of(
        agrees_with_torch=close(act.elu(grid()), functional.elu(grid()), atol=1e-15),
        from_the_left=close(act.elu(-h) / -h, 1.0, atol=1e-4),
        from_the_right=close(act.elu(h) / h, 1.0),
        positive=at_least(act.elu(far) + 1, 1e-14),
        slope_is_the_value_plus_one=close(act.elu_slope(far[:2]), act.elu(far[:2]) + 1, atol=1e-15),
    )


@claim("B1.2-13")
def gelu_dips_below_zero_once() -> Evidence:
    """GELU has one minimum, −0.169971 at −0.751792, which is also its distance from ReLU (book eq. 1.9)."""
    low, high = -2.0, 0.0
    for _ in range(60):  # bisection on the slope
        middle = (low + high) / 2
        falling = float(act.gelu_slope(torch.tensor(middle, dtype=torch.float64))) < 0
        low, high = (middle, high) if falling else (low, middle)
    x = grid(points=160_001)
    apart = (act.gelu(x) - act.relu(x)).abs()
    turns = torch.diff(torch.sign(act.gelu_slope(grid(-5.0, 5.0, 10_000)))).abs().sum() / 2
    return all_of(
        agrees_with_torch=close(act.gelu(x), functional.gelu(x), atol=1e-14),
        where=close(low, -0.751792, atol=5e-7),
        minimum=close(act.gelu(torch.tensor(low, dtype=torch.float64)), -0.169971, atol=5e-7),
        turns_once=close(turns, 1.0),
        distance_from_relu=close(apart.max(), 0.169971, atol=5e-7),
        furthest_at=close(x[apart.argmax()].abs(), 0.751792, atol=1e-4),
    )


@claim("B1.2-13")
def the_error_function_is_its_integral() -> Evidence:
    """Our GELU needs the erf of its definition: a series and a quadrature agree to 1e−12 (book eq. 1.10)."""
    x = torch.linspace(-4, 4, 81, dtype=torch.float64)
    term = x.clone()  # erf(x) = 2/√π exp(−x²) Σ_n 2ⁿ x²ⁿ⁺¹ / (2n+1)!!, whose terms all have the sign of x
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
        gelu=close(act.gelu(x), x / 2 * (1 + series_at(x / sqrt(2))), atol=1e-12),
    )


def series_at(x: Tensor) -> Tensor:
    """The erf by its Maclaurin series, 2/√π Σ_n (−1)ⁿ x²ⁿ⁺¹ / (n! (2n+1)), good for moderate x."""
    power, total = x.clone(), x.clone()
    for n in range(1, 80):
        power = -power * x.square() / n
        total = total + power / (2 * n + 1)
    return 2 / sqrt(pi) * total


def _simpson(values: Tensor) -> Tensor:
    """∫₀¹ of equally spaced values along the first axis, whose count is odd."""
    weights = torch.full((len(values),), 2.0, dtype=values.dtype)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return weights @ values / (3 * (len(values) - 1))
