"""Claims about densities that move and rest: Fokker and Planck, Langevin (Diehl sec. 5.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_most, claim, close, erratum, rate
from parnassus.diffusion.euler_maruyama import euler_maruyama
from parnassus.diffusion.fokker_planck import (
    fokker_planck,
    heat_kernel,
    jump_rates,
    stationary_density,
    transition_matrix,
)
from parnassus.diffusion.langevin import langevin
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.probability import normal_density


def _unit(x: Tensor, _: Tensor) -> Tensor:
    return torch.ones_like(x)


def _still(x: Tensor, _: Tensor) -> Tensor:
    return torch.zeros_like(x)


def _line(reach: float = 6.0, cells: int = 300) -> tuple[Tensor, Tensor]:
    """Edges of cells over [−reach, reach] and their centres."""
    edges = torch.linspace(-reach, reach, cells + 1, dtype=torch.float64)
    return edges, (edges[:-1] + edges[1:]) / 2


@erratum("C-26", printed="(2πt)^(−½) exp(−x²/2)", right="(2πt)^(−½) exp(−x²/(2t))")
def the_heat_kernel_needs_time_in_its_exponent() -> Correction:
    """A density of mass 1 that solves ∂_t p = ½ ∂_xx p; as printed its mass at t = 2 is 0.707 (Diehl sec. 5.1)."""
    edges, x = _line(12.0, 400)
    width = edges.diff()
    printed = torch.exp(-x.square() / 2) / (2 * torch.pi * 2.0) ** 0.5
    moved = fokker_planck(_still, _unit, heat_kernel(x, 0.5), edges, torch.tensor([0.5, 2.0]).double())[-1]
    return Correction(
        printed=close((printed * width).sum(), 1.0, atol=1e-6),
        corrected=all_of(
            mass=close((heat_kernel(x, 2.0) * width).sum(), 1.0, atol=1e-6),
            solves_the_equation=close(moved, heat_kernel(x, 2.0), atol=1e-4),
        ),
    )


@claim("C-26")
def drift_carries_and_noise_spreads() -> Evidence:
    """μ = 1, σ = 0 moves f to f(x − t), smeared by order h; μ = 0, σ = 1 is heat; both keep mass 1 (Diehl sec. 5.1)."""
    counts = torch.tensor([100.0, 200.0, 400.0], dtype=torch.float64)
    carried, heated, mass = [], [], []
    for cells in counts.int().tolist():
        edges, x = _line(cells=cells)
        span = torch.tensor([0.0, 1.0], dtype=torch.float64)
        moved = fokker_planck(_unit, _still, normal_density(x, mean=-1.0, variance=0.5), edges, span)[-1]
        warm = fokker_planck(_still, _unit, heat_kernel(x, 0.5), edges, span)[-1]
        carried.append(float((moved - normal_density(x, mean=0.0, variance=0.5)).abs().max()))
        heated.append(float((warm - heat_kernel(x, 1.5)).abs().max()))
        mass += [float((p * edges.diff()).sum()) for p in (moved, warm)]
    return all_of(
        transport=rate(counts, torch.tensor(carried), -1.0, atol=0.15),
        heat=rate(counts, torch.tensor(heated), -2.0, atol=0.05),
        mass=close(torch.tensor(mass), 1.0, atol=1e-6),
    )


def _double_well(x: Tensor, _: Tensor) -> Tensor:
    """−½ U′ with U = (x² − 1)²: Langevin's drift ½ ∂ log π for π ∝ e^{−U}."""
    return -2 * x * (x.square() - 1)


def _well_density(edges: Tensor, x: Tensor, *, power: float = 1.0) -> Tensor:
    """π^power for π ∝ exp(−(x² − 1)²), of mass 1 on the cells."""
    density = torch.exp(-power * (x.square() - 1).square())
    return density / (density * edges.diff()).sum()


@claim("C-26")
def the_density_is_that_of_the_paths() -> Evidence:
    """Histograms of 20,000 Euler-Maruyama paths in a double well agree with the equation's density at three times."""
    torch.manual_seed(0)
    edges, _ = _line(3.0, 120)
    moments = torch.tensor([0.0, 0.2, 0.6, 2.0], dtype=torch.float64)
    begin = torch.zeros(120, dtype=torch.float64)
    begin[60:62] = 0.5 / edges.diff()[60:62]  # evenly over [0, 0.1]
    density = fokker_planck(_double_well, _unit, begin, edges, moments)
    x = torch.rand(20_000, dtype=torch.float64) / 10
    apart = []
    for index in range(1, len(moments)):
        times = torch.linspace(float(moments[index - 1]), float(moments[index]), 101, dtype=torch.float64)
        x = euler_maruyama(_double_well, _unit, x, times)
        share = torch.histc(x, 30, -3.0, 3.0) / len(x)
        mass = (density[index] * edges.diff()).view(30, 4).sum(1)
        apart.append(float((share - mass).abs().sum() / 2))
    return at_most(torch.tensor(apart), 0.02)  # sampling alone makes about 0.01


@claim("C-27")
def langevin_keeps_its_density() -> Evidence:
    """Langevin's dX = ½ ∂log π dt + dW rests in π; with the drift ∂log π it would rest in π² (Diehl sec. 5.1)."""
    edges, x = _line(3.0)
    target = _well_density(edges, x)
    later = fokker_planck(_double_well, _unit, target, edges, torch.tensor([0.0, 3.0]).double())[-1]
    twice = stationary_density(lambda x, t: 2 * _double_well(x, t), _unit, edges)
    return all_of(
        rests=close(stationary_density(_double_well, _unit, edges), target, atol=2e-4),
        stays=close(later, target, atol=2e-4),
        without_the_half=close(twice, _well_density(edges, x, power=2.0), atol=1e-3),
    )


@claim("C-27")
def langevin_forgets_its_start_exponentially() -> Evidence:
    """From a point, the total variation to π falls as e^{−λt}, λ the least rate (Roberts and Tweedie 1996)."""
    edges, _ = _line(3.0, 120)
    rates = jump_rates(_double_well, _unit, edges)
    target = stationary_density(_double_well, _unit, edges) * edges.diff()
    slowest = -torch.linalg.eigvals(rates).real.sort(descending=True).values[1]
    step = transition_matrix(rates, 0.5)
    mass, apart = torch.zeros(120, dtype=torch.float64), []
    mass[20] = 1.0  # the point −2
    for _ in range(20):
        mass = step @ mass
        apart.append((mass - target).abs().sum() / 2)
    far = torch.stack(apart)
    return all_of(
        falls=at_most(far.diff(), 0.0),
        at_the_least_rate=close(-(far[1:] / far[:-1]).log()[-4:] / 0.5, slowest, rtol=1e-3),
        to_nothing=at_most(far[-1], 0.02),
    )


@claim("C-27")
def langevin_without_noise_is_gradient_descent() -> Evidence:
    """A step Δ of ½ ∂log π alone is a step of gradient descent on −log π at the rate Δ/2 (Diehl secs. 1.5, 5.1)."""
    start = torch.tensor([-1.8, 0.3, 1.1], dtype=torch.float64)
    times = torch.linspace(0, 2, 41, dtype=torch.float64)
    path = gradient_descent(lambda x: (x.square() - 1).square().sum(), start, rate=0.025, steps=40)
    return all_of(
        same=close(euler_maruyama(_double_well, _still, start, times), path[-1], atol=1e-12),
        ends_in_a_well=close(path[-1].abs(), 1.0, atol=0.01),
    )


@claim("C-27", "B13.2.7-1")
def the_step_of_langevin_sampling_is_half_a_step_of_time() -> Evidence:
    """The step x + c ∇log π + √(2c) ε is Euler's and Maruyama's of dX = ½ ∇log π dt + dW, Δ = 2c (book eq. 13.87)."""
    start = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
    torch.manual_seed(0)
    walk = langevin(lambda x: 2 * _double_well(x, x), start, step=0.02, steps=50)
    torch.manual_seed(0)
    path = euler_maruyama(_double_well, _unit, start, torch.linspace(0, 2, 51, dtype=torch.float64))
    return close(path, walk, atol=1e-9)
