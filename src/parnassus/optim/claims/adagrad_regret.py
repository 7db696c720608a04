"""Claims of the regret bound of AdaGrad, from the identity of one step to the rate (book sec. 3.3.1)."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.optim.adagrad_regret import AdaGradRun, lipschitz_trace_bound, smooth_regret_bound
from parnassus.optim.averaging import averaged_descent, biased_coin, coin_slope
from parnassus.optim.problems import Problem, largest_coordinate, quadratic, smooth_problems

STEPS = 60


def exact_run(problem: Problem, *, rate: float, steps: int = STEPS) -> AdaGradRun:
    """AdaGrad along the exact gradients of one function."""
    slope = grad(problem.loss)
    return AdaGradRun.follow(lambda _, w: slope(w), problem.start, rate=rate, steps=steps)


def convex_runs() -> dict[str, tuple[Problem, AdaGradRun]]:
    """Runs on convex problems, smooth ones and one that is not, with rates of the order of the distance."""
    generator = torch.Generator().manual_seed(0)
    problems = {name: problem for name, problem in smooth_problems().items() if problem.alpha >= 0}
    problems["largest coordinate"] = largest_coordinate(torch.randn(4, generator=generator, dtype=torch.float64))
    return {
        f"{name}, η = {share:g} R": (problem, exact_run(problem, rate=share * problem.radius))
        for name, problem in problems.items()
        for share in (0.3, 1.0)
    }


def _row(draws: Tensor, t: int, _: Tensor) -> Tensor:
    return draws[t]


def worst(ratios: list[Tensor]) -> Tensor:
    return torch.stack([ratio.max() for ratio in ratios])


@claim("B3.3.1-1")
def a_step_of_adagrad_is_an_identity() -> Evidence:
    """gᵀ(w⁽ᵗ⁾ − w*) = (‖w⁽ᵗ⁾ − w*‖²_G − ‖w⁽ᵗ⁺¹⁾ − w*‖²_G)/(2η) + (η/2)‖g‖²_(G⁻¹), without remainder (book eq. 3.52)."""
    gaps = []
    for problem, run in convex_runs().values():
        right = run.approaches(problem.minimiser) / (2 * run.rate) + run.rate / 2 * run.lengths()
        gaps.append((run.linear_losses(problem.minimiser) - right).abs().max())
    return at_most(torch.stack(gaps), 1e-10)


@claim("B3.3.1-2")
def the_identity_summed_bounds_the_regret() -> Evidence:
    """Convexity: f(w⁽ᵗ⁾) − f* ≤ gᵀ(w⁽ᵗ⁾ − w*), so the sums of both sides bound the regret (book eqs. 3.53-3.56)."""
    spare = []
    for problem, run in convex_runs().values():
        regret = problem.excess(run.path[:-1]).cumsum(0)
        right = (run.approaches(problem.minimiser) / (2 * run.rate) + run.rate / 2 * run.lengths()).cumsum(0)
        spare.append((right - regret).min())
    return at_least(torch.stack(spare), -1e-10)


@claim("B3.3.1-3")
def growing_preconditioners_bound_the_distances() -> Evidence:
    """Σ of the approaches is at most D² tr G, as G⁽ᵗ⁾ − G⁽ᵗ⁻¹⁾ ⪰ 0: the root is operator monotone (book eq. 3.63)."""
    growth, ratios, largest = [], [], []
    for problem, run in convex_runs().values():
        growth.append(torch.linalg.eigvalsh(run.roots.diff(dim=0)).min())
        bound = run.approach_bound(run.diameter(problem.minimiser))
        ratios.append(run.approaches(problem.minimiser).cumsum(0) / bound)
        largest.append(torch.linalg.eigvalsh(run.roots)[:, -1] / run.traces)
    return all_of(
        grows=at_least(torch.stack(growth), -1e-7),  # the root of rounding errors of size 1e-15
        sums=at_most(worst(ratios), 1.0),
        eigenvalue_below_trace=at_most(worst(largest), 1 + 1e-12),
    )


@claim("B3.3.1-3")
def squares_do_not_keep_the_order_that_roots_keep() -> Evidence:
    """A ⪰ B ⪰ 0 gives A^½ ⪰ B^½ but not A² ⪰ B²: the step of the proof is special to the root (book sec. 3.3.1)."""
    b = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    a = b + torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)

    def root(matrix: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh(matrix)
        made: Tensor = vectors * values.clamp(min=0).sqrt() @ vectors.T
        return made

    return all_of(
        ordered=at_least(torch.linalg.eigvalsh(a - b), 0.0),
        roots_too=at_least(torch.linalg.eigvalsh(root(a) - root(b)), -1e-12),
        squares_not=at_most(torch.linalg.eigvalsh(a @ a - b @ b)[0], -0.1),
    )


@claim("B3.3.1-4")
def preconditioned_gradients_sum_to_two_traces_at_most() -> Evidence:
    """‖g_t‖²_(G⁻¹) ≤ 2 (tr G⁽ᵗ⁾ − tr G⁽ᵗ⁻¹⁾), hence Σ ‖g_t‖²_(G⁻¹) ≤ 2 tr G⁽ᵀ⁻¹⁾ (book ex. 3.4)."""
    generator = torch.Generator().manual_seed(0)
    each, total = [], []
    for size in (1, 2, 5, 8) * 5:
        draws = torch.randn(60, size, generator=generator, dtype=torch.float64) * torch.logspace(-1, 1, size).double()
        run = AdaGradRun.follow(partial(_row, draws), torch.zeros(size).double(), rate=1.0, steps=60)
        before = torch.cat([torch.zeros(1, dtype=torch.float64), run.traces[:-1]])
        each.append((run.lengths() - 2 * (run.traces - before)).max())
        total.append(run.lengths().cumsum(0) / run.length_bound())
    ones = AdaGradRun.follow(lambda _, w: torch.ones_like(w), torch.zeros(1).double(), rate=1.0, steps=900)
    return all_of(
        each_step=at_most(torch.stack(each), 1e-6),
        sums=at_most(worst(total), 1.0),
        nearly_attained_by_equal_gradients=at_least((ones.lengths().sum() / ones.length_bound())[-1], 0.97),
    )


@claim("B3.3.1-5")
def the_regret_of_adagrad_is_bounded_by_the_trace() -> Evidence:
    """Σ (f(w⁽ᵗ⁾) − f*) ≤ (D²/(2η) + η) tr G; η = D gives (3/2) D tr G, η = D/√2 only √2 D tr G (book eq. 3.65)."""
    ratios, averages = [], []
    for problem, run in convex_runs().values():
        excess = problem.excess(run.path[:-1])
        bound = run.regret_bound(run.diameter(problem.minimiser))
        ratios.append(excess.cumsum(0) / bound)
        mean = run.path[:-1].mean(0)
        averages.append(problem.excess(mean[None])[0] * STEPS / bound[-1])
    factors = torch.tensor([1 / (2 * eta) + eta for eta in (1.0, 1 / sqrt(2), 0.6, 0.8)], dtype=torch.float64)
    return all_of(
        regret=at_most(worst(ratios), 1.0),
        mean_place=at_most(torch.stack(averages), 1.0),
        one_and_a_half=close(factors[0], 1.5),
        root_two=close(factors[1], sqrt(2), rtol=1e-12),
        best=at_least(factors, sqrt(2) - 1e-12),
    )


@claim("B3.3.1-6")
def smoothness_and_exact_gradients_bound_the_whole_regret() -> Evidence:
    """With ‖∇f‖² ≤ 2β(f − f*) all the regret ever is below (9/2)βdD², which makes its mean O(1/T) (book sec. 3.3.1)."""
    generator = torch.Generator().manual_seed(0)
    problem = quadratic(torch.logspace(-1, 0, 4, dtype=torch.float64), generator=generator)
    run = exact_run(problem, rate=1.5 * problem.radius, steps=600)
    regret = problem.excess(run.path[:-1]).cumsum(0)
    bound = smooth_regret_bound(beta=problem.beta, size=4, diameter=run.rate)
    return all_of(
        rate_is_a_diameter=at_most(run.diameter(problem.minimiser), run.rate),
        bounded=at_most(regret, bound),
        nothing_is_added_late=at_most(regret[-1] - regret[300], 1e-6),
        mean_regret=rate(
            torch.tensor([150.0, 300.0, 600.0]), (regret / torch.arange(1, 601))[[149, 299, 599]], -1.0, atol=0.01
        ),
    )


@erratum("B3.3.1-6", printed="f(w⁽ᵀ⁾) − f* = O(1/T)", right="O(1/√T), of the mean place")
def adagrad_is_one_over_root_t() -> Correction:
    """The trace in the bound grows like √T; with stochastic gradients of length 1 it is √T exactly (book eq. 3.66)."""
    sizes = [16, 64, 256, 1024]
    t = torch.tensor(sizes, dtype=torch.float64)
    errors = torch.stack([coin_error(steps, runs=4_000) for steps in sizes])
    slope = coin_slope(0.1, generator=torch.Generator().manual_seed(0))
    run = AdaGradRun.follow(slope, biased_coin(0.1).start, rate=1.0, steps=200)
    places = torch.arange(1, 201, dtype=torch.float64)
    return Correction(
        printed=rate(t, errors, -1.0, atol=0.2),
        corrected=all_of(
            mean_place=rate(t, errors, -0.5, atol=0.05),
            below_the_bound=at_most(errors, 1.5 / t.sqrt()),
            trace=close(run.traces, lipschitz_trace_bound(places, lipschitz=1.0, size=1), rtol=1e-12),
            bound_over_t=rate(places, run.regret_bound(1.0) / places, -0.5, atol=1e-9),
        ),
    )


def coin_error(steps: int, *, runs: int) -> Tensor:
    """Mean excess of AdaGrad's mean place on the coin that is hardest for so many steps, η = R = 1.

    Slopes are ±1, so G⁽ᵗ⁾ = √(t + 1) whatever they are, and many runs can be made at once.
    """
    bias = steps**-0.5
    problem = biased_coin(bias)
    slope = coin_slope(bias, generator=torch.Generator().manual_seed(steps))
    start = problem.start.repeat(runs, 1)
    mean = averaged_descent(lambda t, w: slope(t, w) / sqrt(t + 1), start, rate=1.0, steps=steps)
    return problem.excess(mean).mean()
