"""Claims about training seen through the tangent kernel (book sec. 15.4)."""

from functools import partial
from math import factorial

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.kernels.backward import layerwise_ntk, network_outputs, random_weights, signals, train_many
from parnassus.kernels.covariance import FeatureKernel
from parnassus.kernels.empirical import empirical_ntk, tangent_product
from parnassus.kernels.finite_width import train_and_measure
from parnassus.kernels.gp_regression import GPRegression
from parnassus.kernels.gradient_flow import GradientFlow
from parnassus.kernels.network import fully_connected
from parnassus.kernels.nonlinearity import ReLU
from parnassus.kernels.quadrature import Quadrature
from parnassus.kernels.wide_kernel import NNGP, NTK

TANH = Quadrature(torch.tanh)
LABELS = torch.tensor([1.0, -1.0, 0.5, -0.5, 1.0], dtype=torch.float64)


def sphere(count: int, *, seed: int = 0) -> Tensor:
    """Points on the unit sphere in space."""
    return normalize(torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


def weights_of_width(width: int, draws: int) -> list[Tensor]:
    return random_weights((3, width, 1), draws=(draws,), generator=torch.Generator().manual_seed(0))


@claim("B15.4-3", "B15.4-7")
def kernel_regression_is_where_three_roads_end() -> Evidence:
    """It interpolates, is a Gaussian process without noise, and where descent from 0 ends (book eq. 15.48)."""
    features = partial(_polynomials, degree=6)
    line = torch.linspace(-1, 1, 4, dtype=torch.float64)[:, None]
    y = torch.tensor([0.3, -1.0, 0.8, 0.2], dtype=torch.float64)
    new = torch.linspace(-1.2, 1.2, 9, dtype=torch.float64)[:, None]
    kernel = FeatureKernel(features)
    flow, zero = GradientFlow.of(kernel(line)), torch.zeros_like(y)
    found = flow.predict(kernel(new, line), zero, y, flow.at(torch.inf))
    theta = torch.zeros(7, dtype=torch.float64)
    for _ in range(10_000):
        theta = theta - 0.2 * features(line).mT @ (features(line) @ theta - y)
    noises = torch.tensor([1e-2, 1e-4, 1e-6])
    off = [GPRegression.fit(kernel, line, y, noise=float(noise)).predict(new).mean - found for noise in noises]
    return all_of(
        interpolates=close(flow.predict(kernel(line), zero, y, flow.at(torch.inf)), y, atol=1e-10),
        solved=close(kernel(new, line) @ torch.linalg.solve(kernel(line), y), found, atol=1e-9),
        gaussian_process=close(GPRegression.fit(kernel, line, y).predict(new).mean, found, atol=1e-8),
        as_noise_goes=rate(noises, torch.stack([part.norm() for part in off]), 1.0, atol=0.1),
        descent_on_the_linear_model=close(features(new) @ theta, found, atol=1e-6),
    )


@claim("B15.4-4")
def descent_follows_the_flow() -> Evidence:
    """θ^τ = θ(ητ): steps of size η leave the path of dθ/dt = −∇ℓ by O(η) (book eqs. 15.49-15.53)."""
    x, start = sphere(5), weights_of_width(8, 1)
    end = partial(train_many, start, x, LABELS, TANH)
    exact = _flow_by_runge_kutta(start, x, LABELS, time=1.0, steps=60)
    rates = torch.tensor([0.04, 0.02, 0.01])
    off = [
        torch.cat([(a - b).flatten() for a, b in zip(end(rate=eta, steps=round(1 / eta)), exact, strict=True)]).norm()
        for eta in rates.tolist()
    ]
    return rate(rates, torch.stack(off), 1.0, atol=0.1)


@claim("B15.4-5")
def outputs_move_by_the_kernel_times_the_residual() -> Evidence:
    """Along the flow du/dt = −K(t)(u − y), exactly at every width and time: here 3 units (book eq. 15.59)."""
    torch.manual_seed(0)
    x, y = sphere(5), LABELS[:, None]
    parts: dict[str, Evidence] = {}
    deep = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3), nn.LayerNorm(3), nn.GELU(), nn.Linear(3, 1))
    for name, module in {"three_units": fully_connected(1, TANH).module((3,), 3), "any_network": deep}.items():
        module.double()
        for moment in ("first", "later"):
            u = module(x).detach()
            predicted = -empirical_ntk(module, x) @ (u - y)
            parts[f"{name}_{moment}"] = close(_velocity(module, x, y), predicted, rtol=1e-6, atol=1e-8)
            parts[f"{name}_{moment}_as_product"] = close(-tangent_product(module, x, u - y), predicted, rtol=1e-9)
            train_and_measure(module, x, y, rate=0.05, steps=30, records=2)
    return all_of(**parts)


@claim("B15.4-6")
def kernels_of_wide_networks_stand_still() -> Evidence:
    """In training the kernel moves by O(1/width) and the parameters by O(1/√width), in relation (book sec. 15.4)."""
    x, widths = sphere(5), torch.tensor([128, 512, 2048])
    kernels, parameters = [], []
    for width in widths.tolist():
        before = weights_of_width(width, 10)
        after = train_many(before, x, LABELS, TANH, rate=0.2, steps=100)
        first, last = (layerwise_ntk(signals(weights, x, TANH)) for weights in (before, after))
        kernels.append(((last - first).norm(dim=(1, 2)) / first.norm(dim=(1, 2))).square().mean().sqrt())
        moved = sum((a - b).square().sum((1, 2)) for a, b in zip(after, before, strict=True))
        size = sum(weight.square().sum((1, 2)) for weight in before)
        parameters.append((torch.as_tensor(moved) / torch.as_tensor(size)).mean().sqrt())
    return all_of(
        kernel=rate(widths, torch.stack(kernels), -1.0, atol=0.2),
        parameters=rate(widths, torch.stack(parameters), -0.5, atol=0.1),
    )


@claim("B15.4-6", "B15.4-7")
def wide_networks_follow_the_frozen_kernel() -> Evidence:
    """Wide networks are where K* sends them, on training points and off them, as near as 1/√width (book eq. 15.62)."""
    x, new, network = sphere(5), sphere(6, seed=1), fully_connected(1, TANH)
    flow, cross = GradientFlow.of(network.kernels(x).ntk), network.kernels(new, x).ntk
    widths, seen, unseen = torch.tensor([64, 256, 1024]), [], []
    for width in widths.tolist():
        before = weights_of_width(width, 12)
        after = train_many(before, x, LABELS, TANH, rate=0.1, steps=40)
        start, target = network_outputs(before, x, TANH).mT, LABELS[:, None].expand(-1, 12)
        progress = flow.after(40, rate=0.1)
        predicted = network_outputs(before, new, TANH).mT + flow.predict(cross, start, target, progress)
        seen.append((network_outputs(after, x, TANH).mT - flow.outputs(start, target, progress)).square().mean().sqrt())
        unseen.append((network_outputs(after, new, TANH).mT - predicted).square().mean().sqrt())
    return all_of(
        training_points=rate(widths, torch.stack(seen), -0.5, atol=0.15),
        new_points=rate(widths, torch.stack(unseen), -0.5, atol=0.15),
        at_width_1024=at_most(torch.stack([seen[-1], unseen[-1]]), 0.06),
    )


@claim("B15.3-5", "B15.4-7")
def the_readout_alone_learns_the_nngp_and_all_layers_the_ntk() -> Evidence:
    """Descent on a wide network's readout ends at NNGP regression, on all layers at NTK regression (book sec. 15.4).

    As near as 1/√width, less the function that each network began with; the two regressions are far apart.
    """
    x, new, network = sphere(5), sphere(6, seed=1), fully_connected(1, ReLU())
    nngp, ntk = (GPRegression.fit(kernel(network), x, LABELS).predict(new).mean for kernel in (NNGP, NTK))
    widths = torch.tensor([64, 256, 1024])
    readouts, networks = zip(
        *(_learned_at(new, x, weights_of_width(width, 12)) for width in widths.tolist()), strict=True
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
        apart=at_least((nngp - ntk).abs().max(), 0.4),
    )


@claim("B15.4-6")
def every_mode_decays_at_its_own_rate() -> Evidence:
    """Modes of K* decay as e^{−λt}, by eigenvectors, by power series and in a wide network (book eq. 15.61)."""
    x, network = sphere(5), fully_connected(1, TANH)
    kernel = network.kernels(x).ntk
    flow = GradientFlow.of(kernel)
    v = torch.randn(5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    series = sum((-0.7) ** j / factorial(j) * torch.linalg.matrix_power(kernel, j) @ v for j in range(60))
    before = weights_of_width(4096, 4)
    after = train_many(before, x, LABELS, TANH, rate=0.005, steps=100)
    left = [flow.along_modes(network_outputs(weights, x, TANH).mT - LABELS[:, None]) for weights in (before, after)]
    measured = -((left[1] * left[0]).sum(1) / left[0].square().sum(1)).clamp(min=1e-3).log() / 0.5
    return all_of(
        series=close(flow.outputs(v, torch.zeros_like(v), flow.at(0.7)), torch.as_tensor(series), atol=1e-10),
        rates_of_the_three_fastest=close(measured[:3], flow.rates[:3], rtol=0.1),
        fastest_first=at_most(flow.rates.diff(), 0.0),
        steps_are_the_flow_for_small_rates=close(
            flow.after(100_000, rate=1e-5).left, flow.at(1.0).left, rtol=1e-3, atol=1e-6
        ),
    )


@erratum("B15.4-6", printed="u(t) → y as t → ∞", right="only if λ_min(K*) > 0; what lies along λ = 0 stays")
def labels_are_reached_only_by_positive_kernels() -> Correction:
    """Without biases a ReLU network on the line has a kernel of rank 2, and never fits five labels (book sec. 15.4)."""
    line = torch.linspace(-2, 2, 5, dtype=torch.float64)[:, None]
    start = torch.zeros_like(LABELS)
    flow = GradientFlow.of(fully_connected(2, ReLU()).kernels(line).ntk, rounding=1e-6)
    stuck = flow.outputs(start, LABELS, flow.at(1e6))
    weights = random_weights((1, 256, 256, 1), generator=torch.Generator().manual_seed(0))
    trained = network_outputs(train_many(weights, line, LABELS, ReLU(), rate=0.02, steps=300), line, ReLU())
    raised = torch.cat([line, torch.ones_like(line)], 1)
    whole = GradientFlow.of(fully_connected(2, ReLU()).kernels(raised).ntk)
    return Correction(
        printed=close(stuck, LABELS, atol=0.1),
        corrected=all_of(
            what_stays=at_least((stuck - LABELS).norm(), 0.5),
            a_network_stays_there_too=at_least((trained - LABELS).norm(), 0.5),
            with_a_constant_coordinate=close(whole.outputs(start, LABELS, whole.at(1e6)), LABELS, atol=1e-6),
        ),
    )


def _learned_at(new: Tensor, x: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """What ReLU networks learned at new points, (draws, points): by their readouts alone, and by all layers."""
    seen, unseen = (signals(weights, points, ReLU()).forward[-1] for points in (x, new))
    kernel, along = seen @ seen.mT, torch.zeros(len(seen), len(x), 1, dtype=torch.float64)
    for _ in range(1500):  # the readout stays a combination of the features seen, so descent may be told in these
        along = along - 0.3 * (kernel @ along - LABELS[:, None])
    began, before = (network_outputs(weights, points, ReLU()) for points in (x, new))
    after = train_many(weights, x, LABELS + began, ReLU(), rate=0.3, steps=80)
    return (unseen @ seen.mT @ along)[..., 0], network_outputs(after, new, ReLU()) - before


def _polynomials(x: Tensor, degree: int) -> Tensor:
    return x ** torch.arange(degree + 1, dtype=x.dtype)


def _velocity(module: nn.Module, x: Tensor, y: Tensor, step: float = 1e-5) -> Tensor:
    """du/dt by central differences along −∇ℓ."""
    theta = list(module.parameters())
    slopes = torch.autograd.grad((module(x) - y).square().sum() / 2, theta)
    ends = []
    with torch.no_grad():
        for way in (-step, 2 * step, -step):  # ahead, behind, and back to the start
            for parameter, slope in zip(theta, slopes, strict=True):
                parameter.add_(slope, alpha=way)
            ends.append(module(x))
    ahead, behind, _ = ends
    return torch.sub(ahead, behind) / (2 * step)


def _flow_by_runge_kutta(start: list[Tensor], x: Tensor, y: Tensor, *, time: float, steps: int) -> list[Tensor]:
    """The path of dθ/dt = −∇ℓ by the rule of fourth order."""
    step = time / steps

    def slope(theta: list[Tensor]) -> list[Tensor]:
        moved = train_many(theta, x, y, TANH, rate=1.0, steps=1)
        return [b - a for a, b in zip(theta, moved, strict=True)]

    def ahead(theta: list[Tensor], by: list[Tensor], share: float) -> list[Tensor]:
        return [a + share * step * b for a, b in zip(theta, by, strict=True)]

    theta = start
    for _ in range(steps):
        one = slope(theta)
        two = slope(ahead(theta, one, 0.5))
        three = slope(ahead(theta, two, 0.5))
        four = slope(ahead(theta, three, 1.0))
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(one, two, three, four, strict=True)]
        theta = ahead(theta, mean, 1.0)
    return theta
