"""Claims about Brownian motion and stochastic differential equations (Diehl sec. 5.1)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, rate
from parnassus.diffusion.continuous.brownian_motion import (
    ito_sum,
    quadratic_variation,
    refine_path,
    stratonovich_sum,
    wiener_process,
)
from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck

UNIT = torch.linspace(0, 1, 2, dtype=torch.float64)


@claim("C-24")
def the_ito_integral_of_brownian_motion() -> Evidence:
    """∫W dW = (W₁² − 1)/2; sums over n left endpoints have the RMS error √(1/(2n)) (Diehl sec. 5.1)."""
    generator = torch.Generator().manual_seed(0)
    times, path = UNIT, wiener_process(UNIT, (20_000,), generator=generator)
    counts, errors = [], []
    for _ in range(7):
        times, path = refine_path(times, path, generator=generator)
        limit = (path[-1].square() - 1) / 2  # the same for every grid, since refinement keeps W₁
        counts.append(len(times) - 1.0)
        errors.append(float((ito_sum(path, path)[-1] - limit).square().mean().sqrt()))
    n = torch.tensor(counts, dtype=torch.float64)
    last = ito_sum(path, path)[-1]
    return all_of(
        order=rate(n, torch.tensor(errors), -0.5, atol=0.02),
        constant=close(torch.tensor(errors), (1 / (2 * n)).sqrt(), rtol=0.03),
        mean_zero=close(last.mean(), 0.0, atol=0.02),
        isometry=close(last.square().mean(), 0.5, atol=0.04),
        stratonovich_chain_rule=close(stratonovich_sum(path, path)[-1], path[-1].square() / 2, atol=1e-12),
    )


@claim("C-24")
def brownian_motion_has_quadratic_variation_t() -> Evidence:
    """Σ (ΔW)² converges to t with an RMS error of order n^(−½); for a smooth path the sum converges to 0."""
    counts = torch.tensor([16.0, 64.0, 256.0, 1024.0], dtype=torch.float64)
    errors, smooth = [], []
    for seed, n in enumerate(counts.int().tolist()):
        times = torch.linspace(0, 2, n + 1, dtype=torch.float64)
        sums = quadratic_variation(wiener_process(times, (4_000,), generator=torch.Generator().manual_seed(seed)))[-1]
        errors.append(float((sums - 2).square().mean().sqrt()))
        smooth.append(float(quadratic_variation(times.sin())[-1]))
    return all_of(
        order=rate(counts, torch.tensor(errors), -0.5, atol=0.02),
        constant=close(torch.tensor(errors), 2 * (2 / counts).sqrt(), rtol=0.05),
        smooth_path=rate(counts, torch.tensor(smooth), -1.0, atol=0.01),
    )


@erratum("C-24", printed="the solution X is a martingale", right="only if μ = 0; otherwise X_t − ∫μ dt is one")
def a_solution_is_a_martingale_only_without_drift() -> Correction:
    """E[X₁ | X up to ½] = X_½ requires μ = 0: exact over all 2¹² paths of a random-walk W (Diehl sec. 5.1)."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        return 0.3 + x.sin() * t

    def gap(mu: float) -> Tensor:
        """X_½ − E[X₁ | the first half], for each of the 2⁶ first halves."""
        times, walks = _random_walks(12)
        start = torch.ones(walks.shape[1], dtype=torch.float64)
        drift = partial(_constant, mu=mu)
        half = euler_maruyama(drift, noise, start, times[:7], wiener=walks[:7])
        end = euler_maruyama(drift, noise, half, times[6:], wiener=walks[6:])
        return (half - end).view(2**6, 2**6).mean(1)  # the later increments vary fastest

    return Correction(
        printed=close(gap(0.5), 0.0, atol=1e-12),
        corrected=all_of(
            without_drift=close(gap(0.0), 0.0, atol=1e-12), compensated=close(gap(0.5), -0.25, atol=1e-12)
        ),
    )


def _random_walks(steps: int) -> tuple[Tensor, Tensor]:
    """Times from 0 to 1, and all 2ⁿ random walks with increments ±√Δ, over which means are exact."""
    signs = 2.0 * (torch.arange(2**steps)[:, None] >> torch.arange(steps - 1, -1, -1) & 1).double() - 1
    path = signs.mT.cumsum(0) / steps**0.5
    return torch.linspace(0, 1, steps + 1, dtype=torch.float64), torch.cat([torch.zeros_like(path[:1]), path])


def _constant(x: Tensor, _: Tensor, *, mu: float) -> Tensor:
    return torch.full_like(x, mu)


@claim("C-24")
def lipschitz_coefficients_give_a_unique_solution() -> Evidence:
    """Solutions whose initial values differ by δ differ by O(δ); with the drift 2√x, not Lipschitz, by 1."""
    times = torch.linspace(0, 1, 1_001, dtype=torch.float64)
    noise = wiener_process(times, (200,), generator=torch.Generator().manual_seed(0))
    start = torch.zeros(200, dtype=torch.float64)
    deltas = torch.tensor([1e-2, 1e-4, 1e-6, 1e-8], dtype=torch.float64)

    def end(x: Tensor) -> Tensor:
        return euler_maruyama(lambda x, _: x.sin(), lambda x, _: 1 + x.cos() / 2, x, times, wiener=noise)

    def rough(x: float) -> Tensor:
        initial = torch.full((1,), x, dtype=torch.float64)
        return euler_maruyama(lambda x, _: 2 * x.abs().sqrt(), lambda x, _: torch.zeros_like(x), initial, times)

    differences = torch.stack([(end(start + delta) - end(start)).square().mean().sqrt() for delta in deltas])
    rough_differences = torch.cat([rough(float(delta)) - rough(0.0) for delta in deltas[1:]])
    return all_of(
        lipschitz=rate(deltas, differences, 1.0, atol=0.01),
        not_lipschitz=close(rough_differences, 1.0, atol=0.1),
    )


def _growth(x: Tensor, _: Tensor) -> Tensor:
    return x / 2


@claim("C-25")
def strong_order_is_one_half_and_one_for_additive_noise() -> Evidence:
    """E|X_Δ − X|² at time 1 decreases as Δ for dX = ½X dt + X dW and as Δ² for dX = −X dt + dW (Diehl sec. 5.1).

    The same paths of W with 8, 16, …, 256 steps. The first solution is e^{W₁}; the second is computed with 2,048 steps.
    """
    generator = torch.Generator().manual_seed(1)
    times = torch.linspace(0, 1, 2_049, dtype=torch.float64)
    path = wiener_process(times, (4_000,), generator=generator)
    start = torch.ones(4_000, dtype=torch.float64)
    process = OrnsteinUhlenbeck()
    fine = euler_maruyama(process.drift, process.volatility, start, times, wiener=path)
    steps, multiplicative, additive = [], [], []
    for stride in (256, 128, 64, 32, 16, 8):
        grid, wiener = times[::stride], path[::stride]
        growth = euler_maruyama(_growth, lambda x, _: x, start, grid, wiener=wiener)
        reverting = euler_maruyama(process.drift, process.volatility, start, grid, wiener=wiener)
        steps.append(stride / 2_048)
        multiplicative.append(float((growth - path[-1].exp()).square().mean().sqrt()))
        additive.append(float((reverting - fine).square().mean().sqrt()))
    delta = torch.tensor(steps)
    return all_of(
        multiplicative_noise=rate(delta, torch.tensor(multiplicative), 0.5, atol=0.1),
        additive_noise=rate(delta, torch.tensor(additive), 1.0, atol=0.05),
    )


@claim("C-25")
def weak_order_is_one() -> Evidence:
    """The errors of E X and E X² for dX = ½X dt + ½X dW are O(Δ): exact over all paths of a random-walk W."""
    counts = (4, 6, 8, 12, 14)
    ends = []
    for steps in counts:
        times, walks = _random_walks(steps)
        start = torch.ones(walks.shape[1], dtype=torch.float64)
        ends.append(euler_maruyama(_growth, lambda x, _: x / 2, start, times, wiener=walks))
    first = torch.stack([torch.e**0.5 - end.mean() for end in ends])
    second = torch.stack([torch.e**1.25 - end.square().mean() for end in ends])
    delta = 1 / torch.tensor(counts, dtype=torch.float64)
    return all_of(mean=rate(delta, first, 1.0, atol=0.1), square=rate(delta, second, 1.0, atol=0.15))
