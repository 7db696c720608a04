"""Claims about the convergence theorems of gradient descent and their assumptions (book sec. 3.1)."""

from dataclasses import replace

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.optim.convexity.convergence_bounds import (
    convex_bound,
    convex_worst_case,
    descent_lemma_decrease,
    first_order_decrease,
    min_squared_gradient_bound,
    polyak_lojasiewicz_bound,
    step_counts,
    strongly_convex_bound,
    strongly_convex_worst_case,
)
from parnassus.optim.landscapes.problems import (
    OptimisationProblem,
    huber_worst_case,
    infinity_norm,
    quadratic,
    quartic,
    smooth_problems,
)
from parnassus.optim.optimisers.gradient_descent import gradient_descent

ROUNDING = 1e-13  # rounding error of a comparison of values of order one


def run_gradient_descent(problem: OptimisationProblem, *, steps: int, fraction: float = 1.0) -> Tensor:
    """The iterates of gradient descent with η = fraction/β."""
    return gradient_descent(problem.loss, problem.start, learning_rate=fraction / problem.beta, steps=steps)


def convex_problems(seed: int = 0) -> dict[str, OptimisationProblem]:
    return {name: problem for name, problem in smooth_problems(seed).items() if problem.alpha >= 0}


def strongly_convex_problems() -> list[OptimisationProblem]:
    generator = torch.Generator().manual_seed(1)
    spectra = [torch.logspace(-k, 0, 12, dtype=torch.float64) for k in (1, 2)]
    return [*(quadratic(each, generator=generator) for each in spectra), smooth_problems()["ridge logistic"]]


@claim("B3.1-2")
def decrease_is_the_rate_times_the_squared_gradient() -> Evidence:
    """The decrease per step divided by η‖∇f‖² converges to 1, with an error linear in η (book eq. 3.5)."""
    problem = smooth_problems()["ridge logistic"]
    rates = torch.logspace(-3, 0, 7, dtype=torch.float64) / problem.beta
    start = problem.start[None]
    decreases = torch.stack(
        [
            problem.excess(start) - problem.excess(start - eta * problem.gradients(start))
            for eta in rates  # one step from the same point
        ]
    )[:, 0]
    predicted = torch.stack([first_order_decrease(problem, start, learning_rate=float(eta)) for eta in rates])[:, 0]
    return all_of(
        ratio=close(decreases[0] / predicted[0], 1.0, atol=1e-3),
        error=rate(rates, 1 - decreases / predicted, 1.0, atol=0.02),
    )


@claim("B3.1-3")
def every_step_satisfies_the_descent_lemma() -> Evidence:
    """Every step decreases f by at least η(1 − βη/2)‖∇f‖² for η < 2/β, convex or not (book eq. 3.9)."""
    margins = {}
    for name, problem in smooth_problems().items():
        for fraction in (0.1, 1.0, 1.9):
            path = run_gradient_descent(problem, steps=40, fraction=fraction)
            decrease = -problem.excess(path).diff()
            margins[name, fraction] = (
                decrease - descent_lemma_decrease(problem, path[:-1], learning_rate=fraction / problem.beta)
            ).min()
    box = smooth_problems()["egg box"]
    path = run_gradient_descent(box, steps=20)
    bound = box.gradients(path[:-1]).square().sum(-1) / (2 * box.beta)
    return all_of(
        all_steps=greater_equal(torch.stack(list(margins.values())), -ROUNDING),
        with_one_over_beta=close(descent_lemma_decrease(box, path[:-1], learning_rate=1 / box.beta), bound, rtol=1e-12),
    )


@claim("B3.1-3")
def descent_lemma_needs_bounded_curvature() -> Evidence:
    """Above 2/β a quadratic diverges; on |w|, where β = ∞, the iterates keep oscillating (book sec. 3.1)."""
    problem = strongly_convex_problems()[0]
    below, above = (
        problem.excess(run_gradient_descent(problem, steps=400, fraction=fraction))[-1] for fraction in (1.98, 2.02)
    )
    nonsmooth = infinity_norm(torch.tensor([0.95], dtype=torch.float64))
    oscillating = nonsmooth.excess(gradient_descent(nonsmooth.loss, nonsmooth.start, learning_rate=0.1, steps=100))
    return all_of(
        just_below=less_equal(below, 1e-3),
        just_above=greater_equal(above, 1e3),
        oscillation_at_half_a_step=close(oscillating[20:], 0.05, atol=1e-9),
        bound_for_beta_of_ten=greater_equal(
            descent_lemma_decrease(replace(nonsmooth, beta=10.0), nonsmooth.start[None], learning_rate=0.1), 0.05
        ),
        decrease=close(oscillating[20:].diff(), 0.0, atol=1e-9),
    )


@claim("B3.1-3")
def smallest_gradient_is_bounded() -> Evidence:
    """The smallest ‖∇f‖² of T iterates is at most 2β(f(w⁽⁰⁾) − f*)/T, convex or not (book sec. 3.1)."""
    t = step_counts(200)
    ratios = []
    for problem in smooth_problems().values():
        gradients = problem.gradients(run_gradient_descent(problem, steps=199)).square().sum(-1)
        ratios.append((gradients.cummin(0).values / min_squared_gradient_bound(problem, t)).max())
    stuck = smooth_problems()["egg box"]
    return all_of(
        every_problem=less_equal(torch.stack(ratios), 1.0),
        stationary_point_above_the_minimum=greater_equal(stuck.excess(run_gradient_descent(stuck, steps=400))[-1], 1.0),
    )


@claim("B3.1-4")
def strong_convexity_implies_the_polyak_lojasiewicz_inequality() -> Evidence:
    """f(w) − f* ≤ ‖∇f(w)‖²/(2α) where the curvature is at least α (book eq. 3.15)."""
    generator = torch.Generator().manual_seed(0)
    ratios = []
    for problem in strongly_convex_problems():
        points = problem.minimiser + 3 * torch.randn(200, len(problem.start), generator=generator, dtype=torch.float64)
        ratios.append((problem.excess(points) / polyak_lojasiewicz_bound(problem, points)).max())
    return less_equal(torch.stack(ratios), 1 + 1e-9)


@claim("B3.1-4")
def strong_convexity_gives_linear_convergence() -> Evidence:
    """With η = 1/β each step multiplies the suboptimality by at most 1 − α/β (book eq. 3.18)."""
    t = step_counts(150)
    step_factors, ratios = [], []
    for problem in strongly_convex_problems():
        excess = problem.excess(run_gradient_descent(problem, steps=150))
        is_significant = excess[1:] > 1e-13
        factors = (excess[1:] / excess[:-1])[is_significant]
        step_factors.append(factors.max() - (1 - problem.alpha / problem.beta))
        ratios.append((excess[1:] / strongly_convex_bound(problem, t))[is_significant].max())
    return all_of(
        each_step=less_equal(torch.stack(step_factors), 1e-9), after_t_steps=less_equal(torch.stack(ratios), 1 + 1e-9)
    )


@claim("B3.1-4")
def worst_case_factor_is_the_square() -> Evidence:
    """The tight factor is (1 − α/β)²ᵀ, attained by a quadratic along its direction of curvature α (book sec. 3.1)."""
    t = step_counts(100)
    ratios = []
    for problem in strongly_convex_problems():
        excess = problem.excess(run_gradient_descent(problem, steps=100))[1:]
        ratios.append((excess / strongly_convex_worst_case(problem, t))[excess > 1e-13].max())
    one, alpha = torch.ones(1, dtype=torch.float64), 0.1
    flat = OptimisationProblem(lambda w: alpha * w.square().sum() / 2, one, 0 * one, alpha=alpha, beta=1.0)
    attained = flat.excess(run_gradient_descent(flat, steps=100))[1:]
    return all_of(
        holds=less_equal(torch.stack(ratios), 1 + 1e-9),
        attained=close(attained, strongly_convex_worst_case(flat, t), rtol=1e-9),
        half_the_exponent_is_loose=less_equal(attained[-1] / strongly_convex_bound(flat, t)[-1], 1e-4),
    )


@claim("B3.1-4")
def linear_convergence_needs_strong_convexity() -> Evidence:
    """On w⁴ the factor per step converges to 1, so that 1 − α/β fails eventually for every α > 0 (book sec. 3.1)."""
    problem = quartic(torch.ones(1, dtype=torch.float64))
    excess = problem.excess(run_gradient_descent(problem, steps=2_000))
    tail = slice(500, 2_000)
    return all_of(
        last_factor=greater_equal(excess[-1] / excess[-2], 0.998),
        power_law=rate(step_counts(2_000)[tail], excess[1:][tail], -2.0, atol=0.05),
        bound_for_positive_alpha_fails=greater_equal(
            excess[-1] / strongly_convex_bound(replace(problem, alpha=0.03), torch.tensor([2_000.0]).double())[0], 1.0
        ),
    )


@claim("B3.1-5", "D1.5.4")
def convexity_gives_rate_one_over_t() -> Evidence:
    """f(w⁽ᵀ⁾) − f* ≤ ‖w⁽⁰⁾ − w*‖²/(2ηT) for convex f, η ≤ 1/β and T ≥ 1 (book eq. 3.26, Diehl thm. 1.11)."""
    t = step_counts(150)
    generator = torch.Generator().manual_seed(0)
    flat = quadratic(torch.logspace(-6, 0, 200, dtype=torch.float64), generator=generator)
    ratios = {}
    for name, problem in {**convex_problems(), "flat": flat}.items():
        for fraction in (0.5, 0.999, 1.0):
            excess = problem.excess(run_gradient_descent(problem, steps=150, fraction=fraction))[1:]
            ratios[name, fraction] = (excess / convex_bound(problem, t, learning_rate=fraction / problem.beta)).max()
    return less_equal(torch.stack(list(ratios.values())), 1.0)


@claim("B3.1-5", "D1.5.4")
def every_inequality_of_the_convex_proof_holds() -> Evidence:
    """The value decreases, the distance is non-increasing, and its decrease bounds f − f* (book eqs. 3.19-3.26).

    f(w⁽ᵗ⁺¹⁾) − f* ≤ (‖w⁽ᵗ⁾ − w*‖² − ‖w⁽ᵗ⁺¹⁾ − w*‖²)/(2η); summed over t, the distances telescope (Diehl thm. 1.11).
    """
    names = ("tangent", "decrease", "distance_decreases", "distance_bounds_excess", "last_below_mean")
    margins: dict[str, list[Tensor]] = {name: [] for name in names}
    for problem in convex_problems().values():
        path = run_gradient_descent(problem, steps=100)
        excess, gradients = problem.excess(path), problem.gradients(path)
        gap = path - problem.minimiser
        distance = gap.square().sum(-1)
        margins["tangent"].append(((gradients * gap).sum(-1) - excess).min())
        margins["decrease"].append((-excess.diff() - gradients[:-1].square().sum(-1) / (2 * problem.beta)).min())
        margins["distance_decreases"].append((-distance.diff()).min())
        margins["distance_bounds_excess"].append((-distance.diff() * problem.beta / 2 - excess[1:]).min())
        margins["last_below_mean"].append((excess[1:].mean() - excess[-1]).min())
    return all_of(**{name: greater_equal(torch.stack(each), -1e-12) for name, each in margins.items()})


@claim("B3.1-5", "D1.5.4")
def huber_loss_is_the_worst_case_of_gradient_descent() -> Evidence:
    """The tight bound βR²/(4βηT + 2) is attained by a Huber loss; all other problems stay below (Diehl thm. 1.11)."""
    attained, predicted = [], []
    for steps in (1, 3, 10, 40):
        for fraction in (0.5, 1.0):
            problem = huber_worst_case(fraction * steps, beta=2.0, radius=3.0)
            attained.append(problem.excess(run_gradient_descent(problem, steps=steps, fraction=fraction))[-1])
            predicted.append(
                convex_worst_case(problem, torch.tensor([float(steps)]).double(), learning_rate=fraction / 2.0)[0]
            )
    t = step_counts(200)
    others = [
        (
            problem.excess(run_gradient_descent(problem, steps=200))[1:]
            / convex_worst_case(problem, t, learning_rate=1 / problem.beta)
        ).max()
        for problem in convex_problems().values()
    ]
    return all_of(
        attained=close(torch.stack(attained), torch.stack(predicted), rtol=1e-12),
        other_problems=less_equal(torch.stack(others), 1.0),
    )


@claim("D1.5.4")
def rates_up_to_two_over_l_converge_on_a_quadratic() -> Evidence:
    """On a quadratic η = 1.9/L converges, beyond the assumption of the theorem; 2.1/L diverges (Diehl sec. 1.5)."""
    problem = strongly_convex_problems()[0]
    converging, diverging = (
        problem.excess(run_gradient_descent(problem, steps=300, fraction=fraction)) for fraction in (1.9, 2.1)
    )
    bound = convex_bound(problem, step_counts(300), learning_rate=1 / problem.beta)
    return all_of(
        converges=less_equal(converging[-1], 1e-9),
        diverges=greater_equal(diverging[-1], 1e9),
        violates_the_bound=greater_equal(diverging[300] / bound[-1], 1.0),
    )


@claim("D1.5.4")
def convex_rate_needs_convexity_and_a_minimiser() -> Evidence:
    """On a non-convex cost gradient descent may converge to a stationary point above the minimum.

    If no minimum is attained, as for log(1 + e^−θ), the value decreases but θ diverges (Diehl thm. 1.11).
    """
    stuck = smooth_problems()["egg box"]
    path = run_gradient_descent(stuck, steps=600)
    as_if_convex = convex_bound(replace(stuck, alpha=0.0), step_counts(600), learning_rate=1 / stuck.beta)
    iterates = gradient_descent(
        lambda theta: torch.nn.functional.softplus(-theta).sum(), torch.zeros(1).double(), learning_rate=4.0, steps=600
    )
    return all_of(
        stationary=less_equal(stuck.gradients(path)[-1].abs(), 1e-9),
        above_the_convex_bound=greater_equal(stuck.excess(path)[-1] / as_if_convex[-1], 10.0),
        value_decreases=less_equal(torch.nn.functional.softplus(-iterates[-1]), 1e-3),
        parameters_diverge=greater_equal(iterates[-1] - iterates[300], 0.5),
    )
