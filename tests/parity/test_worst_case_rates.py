"""Convergence rates against PEPit, which computes exact worst cases by semidefinite programming."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from parnassus.optim import (
    OptimisationProblem,
    accelerated_bound,
    accelerated_worst_case,
    convex_bound,
    convex_worst_case,
    ellipse,
    gradient_descent,
    heavy_ball,
    huber_worst_case,
    nesterov_descent,
    smooth_problems,
    strongly_convex_bound,
    strongly_convex_worst_case,
)

pytest.importorskip("PEPit")

from PEPit import PEP
from PEPit.functions import SmoothConvexFunction, SmoothStronglyConvexFunction

TOLERANCE = 3e-5  # accuracy of the semidefinite solver
UNIT = huber_worst_case(0.0)  # any convex problem with β = 1 and ‖w⁽⁰⁾ − w*‖ = 1
Method = Callable[[Any, Any], Any]
"""Returns the last iterate for a function with `gradient` and a start."""


def step_tensor(steps: int) -> torch.Tensor:
    return torch.tensor([float(steps)], dtype=torch.float64)


def worst_excess(method: Method, *, beta: float = 1.0) -> float:
    """The maximum of f(w⁽ᵀ⁾) − f* over convex f of curvature β with ‖w⁽⁰⁾ − w*‖ ≤ 1."""
    problem = PEP()
    function = problem.declare_function(SmoothConvexFunction, L=beta)
    best, start = function.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((start - best) ** 2 <= 1)
    problem.set_performance_metric(function(method(function, start)) - function(best))
    return float(problem.solve(verbose=0))


def worst_excess_ratio(method: Method, *, alpha: float, beta: float = 1.0) -> float:
    """The maximum of (f(w⁽ᵀ⁾) − f*) / (f(w⁽⁰⁾) − f*) for curvatures between α and β."""
    problem = PEP()
    function = problem.declare_function(SmoothStronglyConvexFunction, mu=alpha, L=beta)
    best, start = function.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition(function(start) - function(best) <= 1)
    problem.set_performance_metric(function(method(function, start)) - function(best))
    return float(problem.solve(verbose=0))


def descent(rate: float, steps: int) -> Method:
    def method(function: Any, w: Any) -> Any:
        for _ in range(steps):
            w = w - rate * function.gradient(w)
        return w

    return method


def nesterov(rate: float, steps: int, *, last_w: bool = False) -> Method:
    def method(function: Any, w: Any) -> Any:
        phi = w
        for t in range(steps):
            before, phi = phi, w - rate * function.gradient(w)
            w = phi + t / (t + 3) * (phi - before)
        return w if last_w else phi

    return method


def momentum_method(rate: float, momentum: float, steps: int) -> Method:
    def method(function: Any, w: Any) -> Any:
        velocity = 0 * w
        for _ in range(steps):
            velocity = momentum * velocity + function.gradient(w)
            w = w - rate * velocity
        return w

    return method


@pytest.mark.parametrize("steps", [1, 4, 9])
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_gradient_descent_on_convex_functions_has_the_exact_worst_case(steps: int, rate: float) -> None:
    exact = worst_excess(descent(rate, steps))
    assert exact == pytest.approx(float(convex_worst_case(UNIT, step_tensor(steps), learning_rate=rate)), abs=TOLERANCE)
    assert exact < float(convex_bound(UNIT, step_tensor(steps), learning_rate=rate))


def test_worst_case_scales_with_the_curvature() -> None:
    assert worst_excess(descent(0.2, 3), beta=5.0) == pytest.approx(5 / 14, abs=5 * TOLERANCE)


@pytest.mark.parametrize("steps", [1, 3, 6])
@pytest.mark.parametrize("alpha", [0.05, 0.4])
def test_gradient_descent_on_strongly_convex_functions_has_the_exact_worst_case(steps: int, alpha: float) -> None:
    """The exact factor is the square of that in the book, for all functions and not only quadratics."""
    problem = ellipse(1 / alpha)
    first = float(problem.excess(problem.start[None]))
    exact = worst_excess_ratio(descent(1.0, steps), alpha=alpha)
    assert exact == pytest.approx(
        float(strongly_convex_worst_case(problem, step_tensor(steps))) / first, rel=1e-3, abs=TOLERANCE
    )
    assert exact < float(strongly_convex_bound(problem, step_tensor(steps))) / first


@pytest.mark.parametrize("steps", [1, 2, 5, 10])
def test_nesterov_on_convex_functions_has_the_exact_worst_case(steps: int) -> None:
    exact = worst_excess(nesterov(1.0, steps))
    assert exact == pytest.approx(float(accelerated_worst_case(UNIT, step_tensor(steps))), abs=TOLERANCE)
    assert exact < float(accelerated_bound(UNIT, step_tensor(steps), learning_rate=1.0))
    assert worst_excess(nesterov(1.0, steps, last_w=True)) < exact + TOLERANCE


def test_worst_case_of_nesterov_grows_for_large_learning_rates() -> None:
    stable, unstable = (worst_excess(nesterov(rate, 12)) for rate in (1.0, 1.6))
    assert unstable > 50 * stable


@pytest.mark.parametrize("momentum", [0.3, 0.7])
def test_momentum_is_better_than_its_worst_case_on_a_strongly_convex_problem(momentum: float) -> None:
    problem = smooth_problems()["ridge logistic"]
    steps, rate = 6, 1 / problem.beta
    exact = worst_excess_ratio(momentum_method(rate, momentum, steps), alpha=problem.alpha, beta=problem.beta)
    path = heavy_ball(problem.loss, problem.start, learning_rate=rate, momentum=momentum, steps=steps)
    excess = problem.excess(path)
    assert 0 < float(excess[-1] / excess[0]) < exact


@pytest.mark.parametrize("problem", [p for p in smooth_problems().values() if p.alpha >= 0])
def test_problems_are_better_than_the_worst_case(problem: OptimisationProblem) -> None:
    steps, rate, scale = 8, 1 / problem.beta, problem.beta * problem.radius**2
    plain = gradient_descent(problem.loss, problem.start, learning_rate=rate, steps=steps)
    accelerated_path = nesterov_descent(problem.loss, problem.start, learning_rate=rate, steps=steps).phi
    assert float(problem.excess(plain)[-1]) / scale < worst_excess(descent(1.0, steps))
    assert float(problem.excess(accelerated_path)[-1]) / scale < worst_excess(nesterov(1.0, steps))
