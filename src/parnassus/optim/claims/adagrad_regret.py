"""Claims about the regret bound of AdaGrad, from the identity of one step to the rate (book sec. 3.3.1)."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.optim.convexity.adagrad_regret import (
    AdaGradTrajectory,
    biased_coin_error,
    lipschitz_trace_bound,
    smooth_regret_bound,
)
from parnassus.optim.landscapes.problems import OptimisationProblem, infinity_norm, quadratic, smooth_problems
from parnassus.optim.optimisers.averaged_sgd import biased_coin, coin_subgradient

STEPS = 60


def run_adagrad(problem: OptimisationProblem, *, learning_rate: float, steps: int = STEPS) -> AdaGradTrajectory:
    """AdaGrad with exact gradients of one function."""
    gradient = grad(problem.loss)
    return AdaGradTrajectory.compute(lambda _, w: gradient(w), problem.start, learning_rate=learning_rate, steps=steps)


def adagrad_runs() -> dict[str, tuple[OptimisationProblem, AdaGradTrajectory]]:
    """Runs on smooth and nonsmooth convex problems, with learning rates proportional to the initial distance R."""
    generator = torch.Generator().manual_seed(0)
    problems = {name: problem for name, problem in smooth_problems().items() if problem.alpha >= 0}
    problems["infinity norm"] = infinity_norm(torch.randn(4, generator=generator, dtype=torch.float64))
    return {
        f"{name}, η = {fraction:g} R": (problem, run_adagrad(problem, learning_rate=fraction * problem.radius))
        for name, problem in problems.items()
        for fraction in (0.3, 1.0)
    }


def row_gradient(gradients: Tensor, t: int, _: Tensor) -> Tensor:
    return gradients[t]


def max_ratios(ratios: list[Tensor]) -> Tensor:
    return torch.stack([ratio.max() for ratio in ratios])


@claim("B3.3.1-1")
def adagrad_step_identity_is_exact() -> Evidence:
    """gᵀ(w⁽ᵗ⁾ − w*) = (‖w⁽ᵗ⁾ − w*‖²_G − ‖w⁽ᵗ⁺¹⁾ − w*‖²_G)/(2η) + (η/2)‖g‖²_(G⁻¹) holds exactly (book eq. 3.52)."""
    gaps = []
    for problem, run in adagrad_runs().values():
        right = (
            run.distance_decreases(problem.minimiser) / (2 * run.learning_rate)
            + run.learning_rate / 2 * run.preconditioned_norms()
        )
        gaps.append((run.linearised_regret(problem.minimiser) - right).abs().max())
    return less_equal(torch.stack(gaps), 1e-10)


@claim("B3.3.1-2")
def summed_step_identities_bound_the_regret() -> Evidence:
    """Convexity: f(w⁽ᵗ⁾) − f* ≤ gᵀ(w⁽ᵗ⁾ − w*), so the sums of both sides bound the regret (book eqs. 3.53-3.56)."""
    margins, by_convexity = [], []
    for problem, run in adagrad_runs().values():
        regret = problem.excess(run.path[:-1]).cumsum(0)
        by_convexity.append((run.linearised_regret(problem.minimiser) - problem.excess(run.path[:-1])).min())
        right = (
            run.distance_decreases(problem.minimiser) / (2 * run.learning_rate)
            + run.learning_rate / 2 * run.preconditioned_norms()
        ).cumsum(0)
        margins.append((right - regret).min())
    return all_of(
        sums=greater_equal(torch.stack(margins), -1e-10),
        linearised_regret_of_each_step=greater_equal(torch.stack(by_convexity), -1e-10),
    )


@claim("B3.3.1-3")
def monotone_preconditioners_bound_the_distance_terms() -> Evidence:
    """The sum of the distance decreases is at most D² tr G, as G⁽ᵗ⁾ − G⁽ᵗ⁻¹⁾ ⪰ 0 (book eq. 3.63)."""
    growth, ratios, largest = [], [], []
    for problem, run in adagrad_runs().values():
        growth.append(torch.linalg.eigvalsh(run.roots.diff(dim=0)).min())
        bound = run.distance_bound(run.diameter(problem.minimiser))
        ratios.append(run.distance_decreases(problem.minimiser).cumsum(0) / bound)
        largest.append(torch.linalg.eigvalsh(run.roots)[:, -1] / run.traces)
    return all_of(
        monotone=greater_equal(torch.stack(growth), -1e-7),  # the root of rounding errors of size 1e-15
        sums=less_equal(max_ratios(ratios), 1.0),
        eigenvalue_below_trace=less_equal(max_ratios(largest), 1 + 1e-12),
    )


@claim("B3.3.1-3")
def matrix_square_root_is_operator_monotone() -> Evidence:
    """A ⪰ B ⪰ 0 implies A^½ ⪰ B^½ but not A² ⪰ B², so that the proof needs the root (book sec. 3.3.1)."""
    b = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    a = b + torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)

    def root(matrix: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh(matrix)
        result: Tensor = vectors * values.clamp(min=0).sqrt() @ vectors.T
        return result

    rows = torch.tensor([[1.0, 1.0], [1.0, 0.0]], dtype=torch.float64)  # outer products sum to b, then to a
    run = AdaGradTrajectory.compute(lambda t, _: rows[t], torch.zeros(2).double(), learning_rate=1.0, steps=2)
    return all_of(
        ordered=greater_equal(torch.linalg.eigvalsh(a - b), 0.0),
        roots_ordered=greater_equal(torch.linalg.eigvalsh(root(a) - root(b)), -1e-12),
        squares_not_ordered=less_equal(torch.linalg.eigvalsh(a @ a - b @ b)[0], -0.1),
        preconditioners=close(run.roots[1], root(a), atol=1e-12),
        preconditioners_ordered=greater_equal(torch.linalg.eigvalsh(run.roots[1] - run.roots[0]), -1e-12),
    )


@claim("B3.3.1-4")
def preconditioned_norms_sum_to_at_most_two_traces() -> Evidence:
    """‖g_t‖²_(G⁻¹) ≤ 2 (tr G⁽ᵗ⁾ − tr G⁽ᵗ⁻¹⁾), hence Σ ‖g_t‖²_(G⁻¹) ≤ 2 tr G⁽ᵀ⁻¹⁾ (book ex. 3.4)."""
    generator = torch.Generator().manual_seed(0)
    step_excess, sum_ratios = [], []
    for size in (1, 2, 5, 8) * 5:
        draws = torch.randn(60, size, generator=generator, dtype=torch.float64) * torch.logspace(-1, 1, size).double()
        run = AdaGradTrajectory.compute(
            partial(row_gradient, draws), torch.zeros(size).double(), learning_rate=1.0, steps=60
        )
        before = torch.cat([torch.zeros(1, dtype=torch.float64), run.traces[:-1]])
        step_excess.append((run.preconditioned_norms() - 2 * (run.traces - before)).max())
        sum_ratios.append(run.preconditioned_norms().cumsum(0) / run.preconditioned_norm_bound())
    ones = AdaGradTrajectory.compute(
        lambda _, w: torch.ones_like(w), torch.zeros(1).double(), learning_rate=1.0, steps=900
    )
    return all_of(
        each_step=less_equal(torch.stack(step_excess), 1e-6),
        sums=less_equal(max_ratios(sum_ratios), 1.0),
        equal_gradients_nearly_attain_the_bound=greater_equal(
            (ones.preconditioned_norms().sum() / ones.preconditioned_norm_bound())[-1], 0.97
        ),
    )


@claim("B3.3.1-5")
def adagrad_regret_is_bounded_by_the_trace() -> Evidence:
    """Σ (f(w⁽ᵗ⁾) − f*) ≤ (D²/(2η) + η) tr G; η = D gives (3/2) D tr G, η = D/√2 only √2 D tr G (book eq. 3.65)."""
    ratios, averages = [], []
    for problem, run in adagrad_runs().values():
        excess = problem.excess(run.path[:-1])
        bound = run.regret_bound(run.diameter(problem.minimiser))
        ratios.append(excess.cumsum(0) / bound)
        mean = run.path[:-1].mean(0)
        averages.append(problem.excess(mean[None])[0] * STEPS / bound[-1])
    factors = torch.tensor([1 / (2 * eta) + eta for eta in (1.0, 1 / sqrt(2), 0.6, 0.8)], dtype=torch.float64)
    return all_of(
        regret=less_equal(max_ratios(ratios), 1.0),
        mean_iterate=less_equal(torch.stack(averages), 1.0),
        one_and_a_half=close(factors[0], 1.5),
        root_two=close(factors[1], sqrt(2), rtol=1e-12),
        root_two_is_the_minimum=greater_equal(factors, sqrt(2) - 1e-12),
    )


@claim("B3.3.1-6")
def smoothness_and_exact_gradients_bound_the_total_regret() -> Evidence:
    """As ‖∇f‖² ≤ 2β(f − f*), the total regret is below (9/2)βdD² and its mean is O(1/T) (book sec. 3.3.1)."""
    generator = torch.Generator().manual_seed(0)
    problem = quadratic(torch.logspace(-1, 0, 4, dtype=torch.float64), generator=generator)
    run = run_adagrad(problem, learning_rate=1.5 * problem.radius, steps=600)
    regret = problem.excess(run.path[:-1]).cumsum(0)
    bound = smooth_regret_bound(beta=problem.beta, dim=4, diameter=run.learning_rate)
    return all_of(
        rate_is_a_diameter=less_equal(run.diameter(problem.minimiser), run.learning_rate),
        bounded=less_equal(regret, bound),
        regret_converges=less_equal(regret[-1] - regret[300], 1e-6),
        mean_regret=rate(
            torch.tensor([150.0, 300.0, 600.0]), (regret / torch.arange(1, 601))[[149, 299, 599]], -1.0, atol=0.01
        ),
    )


@erratum("B3.3.1-6", printed="f(w⁽ᵀ⁾) − f* = O(1/T)", right="O(1/√T), for the mean iterate")
def adagrad_error_decays_as_one_over_root_t() -> Correction:
    """The trace in the bound grows as √T; with stochastic gradients of norm 1 it is exactly √T (book eq. 3.66)."""
    sizes = [16, 64, 256, 1024]
    t = torch.tensor(sizes, dtype=torch.float64)
    errors = torch.stack(
        [biased_coin_error(steps, runs=4_000, generator=torch.Generator().manual_seed(steps)) for steps in sizes]
    )
    subgradient = coin_subgradient(0.1, generator=torch.Generator().manual_seed(0))
    run = AdaGradTrajectory.compute(subgradient, biased_coin(0.1).start, learning_rate=1.0, steps=200)
    step = torch.arange(1, 201, dtype=torch.float64)
    return Correction(
        printed=rate(t, errors, -1.0, atol=0.2),
        corrected=all_of(
            mean_iterate=rate(t, errors, -0.5, atol=0.05),
            below_the_bound=less_equal(errors, 1.5 / t.sqrt()),
            trace=close(run.traces, lipschitz_trace_bound(step, lipschitz=1.0, dim=1), rtol=1e-12),
            bound_over_t=rate(step, run.regret_bound(1.0) / step, -0.5, atol=1e-9),
        ),
    )
