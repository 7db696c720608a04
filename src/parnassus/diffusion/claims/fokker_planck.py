"""Claims about the Fokker-Planck equation and the Langevin equation (Diehl sec. 5.1)."""

from itertools import pairwise

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, less_equal, rate
from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama
from parnassus.diffusion.continuous.fokker_planck import (
    fokker_planck,
    heat_kernel,
    jump_rates,
    stationary_density,
    transition_matrix,
)
from parnassus.diffusion.samplers.langevin import langevin
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.probability import normal_density


def _ones(x: Tensor, _: Tensor) -> Tensor:
    return torch.ones_like(x)


def _zeros(x: Tensor, _: Tensor) -> Tensor:
    return torch.zeros_like(x)


def _line(limit: float = 6.0, cells: int = 300) -> tuple[Tensor, Tensor]:
    """Edges of cells over [−limit, limit] and their centres."""
    edges = torch.linspace(-limit, limit, cells + 1, dtype=torch.float64)
    return edges, (edges[:-1] + edges[1:]) / 2


@erratum("C-26", printed="(2πt)^(−½) exp(−x²/2)", right="(2πt)^(−½) exp(−x²/(2t))")
def the_heat_kernel_needs_time_in_its_exponent() -> Correction:
    """The heat kernel solves ∂_t p = ½ ∂_xx p with mass 1; as printed its mass is 0.707 at t = 2 (Diehl sec. 5.1)."""
    edges, x = _line(12.0, 400)
    width = edges.diff()
    printed = torch.exp(-x.square() / 2) / (2 * torch.pi * 2.0) ** 0.5
    solution = fokker_planck(_zeros, _ones, heat_kernel(x, 0.5), edges, torch.tensor([0.5, 2.0]).double())[-1]
    return Correction(
        printed=close((printed * width).sum(), 1.0, atol=1e-6),
        corrected=all_of(
            mass=close((heat_kernel(x, 2.0) * width).sum(), 1.0, atol=1e-6),
            solves_the_equation=close(solution, heat_kernel(x, 2.0), atol=1e-4),
        ),
    )


@claim("C-26")
def drift_transports_and_noise_diffuses() -> Evidence:
    """μ = 1, σ = 0 gives f(x − t) with first-order error, μ = 0, σ = 1 the heat equation; mass 1 (Diehl sec. 5.1)."""
    counts = torch.tensor([100.0, 200.0, 400.0], dtype=torch.float64)
    transport_errors, heat_errors, mass = [], [], []
    for cells in counts.int().tolist():
        edges, x = _line(cells=cells)
        span = torch.tensor([0.0, 1.0], dtype=torch.float64)
        solution = fokker_planck(_ones, _zeros, normal_density(x, mean=-1.0, variance=0.5), edges, span)[-1]
        heat = fokker_planck(_zeros, _ones, heat_kernel(x, 0.5), edges, span)[-1]
        transport_errors.append(float((solution - normal_density(x, mean=0.0, variance=0.5)).abs().max()))
        heat_errors.append(float((heat - heat_kernel(x, 1.5)).abs().max()))
        mass += [float((p * edges.diff()).sum()) for p in (solution, heat)]
    return all_of(
        transport=rate(counts, torch.tensor(transport_errors), -1.0, atol=0.15),
        heat=rate(counts, torch.tensor(heat_errors), -2.0, atol=0.05),
        mass=close(torch.tensor(mass), 1.0, atol=1e-6),
    )


def _double_well(x: Tensor, _: Tensor) -> Tensor:
    """−½ U′ with U = (x² − 1)²: the Langevin drift ½ ∂ log π for π ∝ e^{−U}."""
    return -2 * x * (x.square() - 1)


def _well_density(edges: Tensor, x: Tensor, *, power: float = 1.0) -> Tensor:
    """π^power for π ∝ exp(−(x² − 1)²), of mass 1 on the cells."""
    density = torch.exp(-power * (x.square() - 1).square())
    return density / (density * edges.diff()).sum()


@claim("C-26")
def the_fokker_planck_density_agrees_with_simulated_paths() -> Evidence:
    """Histograms of 20,000 Euler-Maruyama paths in a double well agree with the numerical density at three times."""
    torch.manual_seed(0)
    edges, _ = _line(3.0, 120)
    observation_times = torch.tensor([0.0, 0.2, 0.6, 2.0], dtype=torch.float64)
    initial = torch.zeros(120, dtype=torch.float64)
    initial[60:62] = 0.5 / edges.diff()[60:62]  # uniform on [0, 0.1]
    density = fokker_planck(_double_well, _ones, initial, edges, observation_times)
    x = torch.rand(20_000, dtype=torch.float64) / 10
    distances = []
    for index, (start, end) in enumerate(pairwise(observation_times.tolist()), 1):
        times = torch.linspace(start, end, 101, dtype=torch.float64)
        x = euler_maruyama(_double_well, _ones, x, times)
        frequency = torch.histc(x, 30, -3.0, 3.0) / len(x)
        mass = (density[index] * edges.diff()).view(30, 4).sum(1)
        distances.append(float((frequency - mass).abs().sum() / 2))
    return less_equal(torch.tensor(distances), 0.02)  # sampling noise alone is about 0.01


@claim("C-27")
def the_target_is_stationary_under_langevin_dynamics() -> Evidence:
    """π is stationary for dX = ½ ∂log π dt + dW; with the drift ∂log π it is π² (Diehl sec. 5.1)."""
    edges, x = _line(3.0)
    target = _well_density(edges, x)
    later = fokker_planck(_double_well, _ones, target, edges, torch.tensor([0.0, 3.0]).double())[-1]
    twice = stationary_density(lambda x, t: 2 * _double_well(x, t), _ones, edges)
    return all_of(
        stationary=close(stationary_density(_double_well, _ones, edges), target, atol=2e-4),
        at_later_time=close(later, target, atol=2e-4),
        without_the_half=close(twice, _well_density(edges, x, power=2.0), atol=1e-3),
    )


@claim("C-27")
def langevin_dynamics_converges_exponentially() -> Evidence:
    """The total variation distance to π decays as e^{−λt}, λ the spectral gap (Roberts and Tweedie 1996)."""
    edges, _ = _line(3.0, 120)
    rates = jump_rates(_double_well, _ones, edges)
    target = stationary_density(_double_well, _ones, edges) * edges.diff()
    slowest = -torch.linalg.eigvals(rates).real.sort(descending=True).values[1]
    step = transition_matrix(rates, 0.5)
    mass, values = torch.zeros(120, dtype=torch.float64), []
    mass[20] = 1.0  # the point −2
    for _ in range(20):
        mass = step @ mass
        values.append((mass - target).abs().sum() / 2)
    distances = torch.stack(values)
    return all_of(
        decreasing=less_equal(distances.diff(), 0.0),
        rate=close(-(distances[1:] / distances[:-1]).log()[-4:] / 0.5, slowest, rtol=1e-3),
        final=less_equal(distances[-1], 0.02),
    )


@claim("C-27")
def langevin_without_noise_is_gradient_descent() -> Evidence:
    """An Euler step Δ of the drift ½ ∂log π is a gradient descent step on −log π of size Δ/2 (Diehl secs. 1.5, 5.1)."""
    start = torch.tensor([-1.8, 0.3, 1.1], dtype=torch.float64)
    times = torch.linspace(0, 2, 41, dtype=torch.float64)
    path = gradient_descent(lambda x: (x.square() - 1).square().sum(), start, learning_rate=0.025, steps=40)
    return all_of(
        equals_gradient_descent=close(euler_maruyama(_double_well, _zeros, start, times), path[-1], atol=1e-12),
        ends_in_a_well=close(path[-1].abs(), 1.0, atol=0.01),
    )


@claim("C-27", "B13.2.7-1")
def a_langevin_step_is_an_euler_maruyama_step() -> Evidence:
    """The Euler-Maruyama step of dX = ½ ∇log π dt + dW with Δ = 2c is x + c ∇log π + √(2c) ε (book eq. 13.87)."""
    start = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    torch.manual_seed(0)
    samples = langevin(lambda x: 2 * _double_well(x, x), start, step=0.02, steps=50)
    torch.manual_seed(0)
    path = euler_maruyama(_double_well, _ones, start, torch.linspace(0, 2, 51, dtype=torch.float64))
    return close(path, samples, atol=1e-9)
