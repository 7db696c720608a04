"""Claims about training and the tangent kernel (book sec. 15.4)."""

from functools import partial
from math import factorial

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.kernels.finite_width.backpropagation import (
    layerwise_ntk,
    network_outputs,
    propagate_signals,
    random_weights,
    train_networks,
)
from parnassus.kernels.finite_width.empirical_ntk import empirical_ntk, ntk_vector_product
from parnassus.kernels.finite_width.width_effects import train_and_measure
from parnassus.kernels.gaussian_processes.covariance import FeatureKernel
from parnassus.kernels.gaussian_processes.gp_regression import GPRegression
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nngp_and_ntk import NNGP, NTK
from parnassus.kernels.infinite_width.nonlinearity import ReLU
from parnassus.kernels.infinite_width.quadrature import Quadrature
from parnassus.kernels.training_dynamics.gradient_flow import GradientFlow
from parnassus.optim.continuous_time.runge_kutta import rk4_step
from parnassus.probability import points_on_sphere, standard_normal

TANH = Quadrature(torch.tanh)
LABELS = torch.tensor([1.0, -1.0, 0.5, -0.5, 1.0], dtype=torch.float64)


def weights_of_width(width: int, draws: int) -> list[Tensor]:
    return random_weights((3, width, 1), draws=(draws,), generator=torch.Generator().manual_seed(0))


@claim("B15.4-3", "B15.4-7")
def kernel_regression_equals_noise_free_gp_and_descent_limit() -> Evidence:
    """Kernel regression interpolates and equals a noise-free GP and the limit of descent from 0 (book eq. 15.48)."""
    features = partial(_polynomials, degree=6)
    line = torch.linspace(-1, 1, 4, dtype=torch.float64)[:, None]
    y = torch.tensor([0.3, -1.0, 0.8, 0.2], dtype=torch.float64)
    new = torch.linspace(-1.2, 1.2, 9, dtype=torch.float64)[:, None]
    kernel = FeatureKernel(features)
    flow, zero = GradientFlow.from_kernel(kernel(line)), torch.zeros_like(y)
    regression = flow.predict(kernel(new, line), zero, y, flow.progress_at(torch.inf))
    theta = torch.zeros(7, dtype=torch.float64)
    for _ in range(10_000):
        theta = theta - 0.2 * features(line).mT @ (features(line) @ theta - y)
    noises = torch.tensor([1e-2, 1e-4, 1e-6])
    posteriors = [GPRegression.fit(kernel, line, y, noise_variance=float(noise)).predict(new).mean for noise in noises]
    errors = torch.stack([(mean - regression).norm() for mean in posteriors])
    return all_of(
        interpolates=close(flow.predict(kernel(line), zero, y, flow.progress_at(torch.inf)), y, atol=1e-10),
        solved=close(kernel(new, line) @ torch.linalg.solve(kernel(line), y), regression, atol=1e-9),
        gaussian_process=close(GPRegression.fit(kernel, line, y).predict(new).mean, regression, atol=1e-8),
        noise_to_zero=rate(noises, errors, 1.0, atol=0.1),
        descent_on_the_linear_model=close(features(new) @ theta, regression, atol=1e-6),
    )


@claim("B15.4-4")
def gradient_descent_approximates_gradient_flow() -> Evidence:
    """θ^τ = θ(ητ): steps of size η differ from the flow dθ/dt = −∇ℓ by O(η) (book eqs. 15.49-15.53)."""
    x, start = points_on_sphere(5, 3), weights_of_width(8, 1)
    end = partial(train_networks, start, x, LABELS, TANH)
    exact = _flow_by_runge_kutta(start, x, LABELS, time=1.0, steps=60)
    rates = torch.tensor([0.04, 0.02, 0.01])
    errors = [
        torch.cat(
            [(a - b).flatten() for a, b in zip(end(learning_rate=eta, steps=round(1 / eta)), exact, strict=True)]
        ).norm()
        for eta in rates.tolist()
    ]
    return rate(rates, torch.stack(errors), 1.0, atol=0.1)


@claim("B15.4-5")
def outputs_change_by_the_kernel_times_the_residual() -> Evidence:
    """Along gradient flow du/dt = −K(t)(u − y) at every width and time, tested with 3 units (book eq. 15.59)."""
    torch.manual_seed(0)
    x, y = points_on_sphere(5, 3), LABELS[:, None]
    parts: dict[str, Evidence] = {}
    deep = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3), nn.LayerNorm(3), nn.GELU(), nn.Linear(3, 1))
    for name, module in {"three_units": fully_connected(1, TANH).module((3,), 3), "any_network": deep}.items():
        module.double()
        for time in ("first", "later"):
            u = module(x).detach()
            predicted = -empirical_ntk(module, x) @ (u - y)
            parts[f"{name}_{time}"] = close(_velocity(module, x, y), predicted, rtol=1e-6, atol=1e-8)
            parts[f"{name}_{time}_as_product"] = close(-ntk_vector_product(module, x, u - y), predicted, rtol=1e-9)
            train_and_measure(module, x, y, learning_rate=0.05, steps=30, records=2)
    return all_of(**parts)


@claim("B15.4-6")
def kernels_of_wide_networks_stay_constant() -> Evidence:
    """In training the relative change of the kernel is O(1/width), of parameters O(1/√width) (book sec. 15.4)."""
    x, widths = points_on_sphere(5, 3), torch.tensor([128, 512, 2048])
    kernels, parameters = [], []
    for width in widths.tolist():
        before = weights_of_width(width, 10)
        after = train_networks(before, x, LABELS, TANH, learning_rate=0.2, steps=100)
        first, last = (layerwise_ntk(propagate_signals(weights, x, TANH)) for weights in (before, after))
        kernels.append(((last - first).norm(dim=(1, 2)) / first.norm(dim=(1, 2))).square().mean().sqrt())
        moved = sum((a - b).square().sum((1, 2)) for a, b in zip(after, before, strict=True))
        size = sum(weight.square().sum((1, 2)) for weight in before)
        parameters.append((torch.as_tensor(moved) / torch.as_tensor(size)).mean().sqrt())
    return all_of(
        kernel=rate(widths, torch.stack(kernels), -1.0, atol=0.2),
        parameters=rate(widths, torch.stack(parameters), -0.5, atol=0.1),
    )


@claim("B15.4-6", "B15.4-7")
def wide_networks_follow_the_constant_kernel() -> Evidence:
    """Wide networks follow the dynamics of K* on training and new points up to O(1/√width) (book eq. 15.62)."""
    x, new, network = points_on_sphere(5, 3), points_on_sphere(6, 3, seed=1), fully_connected(1, TANH)
    flow, cross = GradientFlow.from_kernel(network.kernels(x).ntk), network.kernels(new, x).ntk
    widths, train_errors, test_errors = torch.tensor([64, 256, 1024]), [], []
    for width in widths.tolist():
        before = weights_of_width(width, 12)
        after = train_networks(before, x, LABELS, TANH, learning_rate=0.1, steps=40)
        start, target = network_outputs(before, x, TANH).mT, LABELS[:, None].expand(-1, 12)
        progress = flow.progress_after(40, learning_rate=0.1)
        predicted = network_outputs(before, new, TANH).mT + flow.predict(cross, start, target, progress)
        fitted = flow.outputs(start, target, progress)
        train_errors.append((network_outputs(after, x, TANH).mT - fitted).square().mean().sqrt())
        test_errors.append((network_outputs(after, new, TANH).mT - predicted).square().mean().sqrt())
    return all_of(
        training_points=rate(widths, torch.stack(train_errors), -0.5, atol=0.15),
        new_points=rate(widths, torch.stack(test_errors), -0.5, atol=0.15),
        at_width_1024=less_equal(torch.stack([train_errors[-1], test_errors[-1]]), 0.06),
    )


@claim("B15.3-5", "B15.4-7")
def the_readout_alone_learns_the_nngp_and_all_layers_the_ntk() -> Evidence:
    """Training the readout of a wide network gives NNGP regression, all layers NTK regression (book sec. 15.4).

    Up to O(1/√width), after subtracting each network's initial function; the two regressions differ.
    """
    x, new, network = points_on_sphere(5, 3), points_on_sphere(6, 3, seed=1), fully_connected(1, ReLU())
    nngp, ntk = (GPRegression.fit(kernel(network), x, LABELS).predict(new).mean for kernel in (NNGP, NTK))
    widths = torch.tensor([64, 256, 1024])
    readouts, networks = zip(
        *(_train_and_predict(new, x, weights_of_width(width, 12)) for width in widths.tolist()), strict=True
    )
    return all_of(
        readout=rate(
            widths, torch.stack([(found - nngp).square().mean().sqrt() for found in readouts]), -0.5, atol=0.2
        ),
        all_layers=rate(
            widths, torch.stack([(found - ntk).square().mean().sqrt() for found in networks]), -0.5, atol=0.2
        ),
        mean_readout=close(readouts[-1].mean(0), nngp, atol=0.1),
        mean_network=close(networks[-1].mean(0), ntk, atol=0.1),
        difference=greater_equal((nngp - ntk).abs().max(), 0.4),
    )


@claim("B15.4-6")
def every_mode_decays_at_its_own_rate() -> Evidence:
    """Modes of K* decay as e^{−λt}: eigenvectors, power series and a wide network agree (book eq. 15.61)."""
    x, network = points_on_sphere(5, 3), fully_connected(1, TANH)
    kernel = network.kernels(x).ntk
    flow = GradientFlow.from_kernel(kernel)
    v = standard_normal(5, seed=2)
    series = sum((-0.7) ** j / factorial(j) * torch.linalg.matrix_power(kernel, j) @ v for j in range(60))
    before = weights_of_width(4096, 4)
    after = train_networks(before, x, LABELS, TANH, learning_rate=0.005, steps=100)
    first, last = (
        flow.mode_coefficients(network_outputs(weights, x, TANH).mT - LABELS[:, None]) for weights in (before, after)
    )
    measured = -((last * first).sum(1) / first.square().sum(1)).clamp(min=1e-3).log() / 0.5
    return all_of(
        series=close(flow.outputs(v, torch.zeros_like(v), flow.progress_at(0.7)), torch.as_tensor(series), atol=1e-10),
        rates_of_the_three_fastest=close(measured[:3], flow.rates[:3], rtol=0.1),
        fastest_first=less_equal(flow.rates.diff(), 0.0),
        descent_is_the_flow_for_small_rates=close(
            flow.progress_after(100_000, learning_rate=1e-5).remaining,
            flow.progress_at(1.0).remaining,
            rtol=1e-3,
            atol=1e-6,
        ),
    )


@erratum("B15.4-6", printed="u(t) → y as t → ∞", right="only if λ_min(K*) > 0; components along λ = 0 stay")
def labels_are_fitted_only_by_positive_definite_kernels() -> Correction:
    """Without biases a ReLU network on a line has a kernel of rank 2 and cannot fit five labels (book sec. 15.4)."""
    line = torch.linspace(-2, 2, 5, dtype=torch.float64)[:, None]
    start = torch.zeros_like(LABELS)
    flow = GradientFlow.from_kernel(fully_connected(2, ReLU()).kernels(line).ntk, rounding=1e-6)
    limit = flow.outputs(start, LABELS, flow.progress_at(1e6))
    weights = random_weights((1, 256, 256, 1), generator=torch.Generator().manual_seed(0))
    trained = network_outputs(
        train_networks(weights, line, LABELS, ReLU(), learning_rate=0.02, steps=300), line, ReLU()
    )
    extended = torch.cat([line, torch.ones_like(line)], 1)
    full_rank = GradientFlow.from_kernel(fully_connected(2, ReLU()).kernels(extended).ntk)
    return Correction(
        printed=close(limit, LABELS, atol=0.1),
        corrected=all_of(
            permanent_residual=greater_equal((limit - LABELS).norm(), 0.5),
            residual_of_a_network=greater_equal((trained - LABELS).norm(), 0.5),
            with_a_constant_coordinate=close(
                full_rank.outputs(start, LABELS, full_rank.progress_at(1e6)), LABELS, atol=1e-6
            ),
        ),
    )


def _train_and_predict(new: Tensor, x: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Changes of ReLU networks at new points, (draws, points): training the readout alone, and all layers."""
    features, new_features = (propagate_signals(weights, points, ReLU()).forward[-1] for points in (x, new))
    kernel, dual = features @ features.mT, torch.zeros(len(features), len(x), 1, dtype=torch.float64)
    for _ in range(1500):  # the readout stays in the span of the training features: descent in dual coordinates
        dual = dual - 0.3 * (kernel @ dual - LABELS[:, None])
    initial, initial_new = (network_outputs(weights, points, ReLU()) for points in (x, new))
    after = train_networks(weights, x, LABELS + initial, ReLU(), learning_rate=0.3, steps=80)
    return (new_features @ features.mT @ dual)[..., 0], network_outputs(after, new, ReLU()) - initial_new


def _polynomials(x: Tensor, degree: int) -> Tensor:
    return x ** torch.arange(degree + 1, dtype=x.dtype)


def _velocity(module: nn.Module, x: Tensor, y: Tensor, step: float = 1e-5) -> Tensor:
    """du/dt by central differences along −∇ℓ."""
    theta = list(module.parameters())
    gradients = torch.autograd.grad((module(x) - y).square().sum() / 2, theta)
    ends = []
    with torch.no_grad():
        for offset in (-step, 2 * step, -step):  # forward, backward, and back to the start
            for parameter, gradient in zip(theta, gradients, strict=True):
                parameter.add_(gradient, alpha=offset)
            ends.append(module(x))
    forward, backward, _ = ends
    return torch.sub(forward, backward) / (2 * step)


def _flow_by_runge_kutta(start: list[Tensor], x: Tensor, y: Tensor, *, time: float, steps: int) -> list[Tensor]:
    """The solution of dθ/dt = −∇ℓ by the classical Runge-Kutta method of order 4."""

    def weights(theta: Tensor) -> list[Tensor]:
        parts = theta.split([weight.numel() for weight in start])
        return [part.view_as(weight) for part, weight in zip(parts, start, strict=True)]

    def flatten(weights: list[Tensor]) -> Tensor:
        return torch.cat([weight.flatten() for weight in weights])

    def negative_gradient(theta: Tensor, _: float) -> Tensor:
        return flatten(train_networks(weights(theta), x, y, TANH, learning_rate=1.0, steps=1)) - theta

    theta = flatten(start)
    for _ in range(steps):
        theta = rk4_step(negative_gradient, theta, 0.0, time / steps)
    return weights(theta)
