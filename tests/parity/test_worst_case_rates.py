"""Our rates against PEPit, which computes the exact worst case of a method by semidefinite programming."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from parnassus.optim import (
    Problem,
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

SLACK = 3e-5  # of the semidefinite solver
UNIT = huber_worst_case(0.0)  # any convex problem with β = 1 and ‖w⁽⁰⁾ − w*‖ = 1
Method = Callable[[Any, Any], Any]
"""The last place of a method, from a function with `gradient` and a start."""


def at(steps: int) -> torch.Tensor:
    return torch.tensor([float(steps)], dtype=torch.float64)


def worst_excess(method: Method, *, beta: float = 1.0) -> float:
    """The most f(w⁽ᵀ⁾) − f* of any convex f of curvature β with ‖w⁽⁰⁾ − w*‖ = 1."""
    problem = PEP()
    function = problem.declare_function(SmoothConvexFunction, L=beta)
    best, start = function.stationary_point(), problem.set_initial_point()
    problem.set_initial_condition((start - best) ** 2 <= 1)
    problem.set_performance_metric(function(method(function, start)) - function(best))
    return float(problem.solve(verbose=0))


def worst_share(method: Method, *, alpha: float, beta: float = 1.0) -> float:
    """The most that can be left of the first excess, for curvatures between α and β."""
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


def accelerated(rate: float, steps: int, *, last_w: bool = False) -> Method:
    def method(function: Any, w: Any) -> Any:
        phi = w
        for t in range(steps):
            before, phi = phi, w - rate * function.gradient(w)
            w = phi + t / (t + 3) * (phi - before)
        return w if last_w else phi

    return method


def with_momentum(rate: float, momentum: float, steps: int) -> Method:
    def method(function: Any, w: Any) -> Any:
        velocity = 0 * w
        for _ in range(steps):
            velocity = momentum * velocity + function.gradient(w)
            w = w - rate * velocity
        return w

    return method


@pytest.mark.parametrize("steps", [1, 4, 9])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_descent_on_convex_functions(steps: int, share: float) -> None:
    exact = worst_excess(descent(share, steps))
    assert exact == pytest.approx(float(convex_worst_case(UNIT, at(steps), learning_rate=share)), abs=SLACK)
    assert exact < float(convex_bound(UNIT, at(steps), learning_rate=share))


def test_the_worst_case_scales_with_the_curvature() -> None:
    assert worst_excess(descent(0.2, 3), beta=5.0) == pytest.approx(5 / 14, abs=5 * SLACK)


@pytest.mark.parametrize("steps", [1, 3, 6])
@pytest.mark.parametrize("alpha", [0.05, 0.4])
def test_descent_on_strongly_convex_functions(steps: int, alpha: float) -> None:
    """The exact factor is that of the book squared, for all functions and not only for quadratics."""
    problem = ellipse(1 / alpha)
    first = float(problem.excess(problem.start[None]))
    exact = worst_share(descent(1.0, steps), alpha=alpha)
    assert exact == pytest.approx(float(strongly_convex_worst_case(problem, at(steps))) / first, rel=1e-3, abs=SLACK)
    assert exact < float(strongly_convex_bound(problem, at(steps))) / first


@pytest.mark.parametrize("steps", [1, 2, 5, 10])
def test_nesterov_on_convex_functions(steps: int) -> None:
    exact = worst_excess(accelerated(1.0, steps))
    assert exact == pytest.approx(float(accelerated_worst_case(UNIT, at(steps))), abs=SLACK)
    assert exact < float(accelerated_bound(UNIT, at(steps), learning_rate=1.0))
    assert worst_excess(accelerated(1.0, steps, last_w=True)) < exact + SLACK


def test_beyond_four_thirds_nesterov_has_no_worst_case_that_shrinks() -> None:
    inside, beyond = (worst_excess(accelerated(rate, 12)) for rate in (1.0, 1.6))
    assert beyond > 50 * inside


@pytest.mark.parametrize("momentum", [0.3, 0.7])
def test_no_strongly_convex_problem_is_worse_for_momentum_than_the_worst_case(momentum: float) -> None:
    problem = smooth_problems()["ridge logistic"]
    steps, rate = 6, 1 / problem.beta
    exact = worst_share(with_momentum(rate, momentum, steps), alpha=problem.alpha, beta=problem.beta)
    path = heavy_ball(problem.loss, problem.start, learning_rate=rate, momentum=momentum, steps=steps)
    excess = problem.excess(path)
    assert 0 < float(excess[-1] / excess[0]) < exact


@pytest.mark.parametrize("problem", [p for p in smooth_problems().values() if p.alpha >= 0])
def test_no_test_problem_is_worse_than_the_worst_case(problem: Problem) -> None:
    steps, rate, scale = 8, 1 / problem.beta, problem.beta * problem.radius**2
    plain = gradient_descent(problem.loss, problem.start, learning_rate=rate, steps=steps)
    ahead = nesterov_descent(problem.loss, problem.start, learning_rate=rate, steps=steps).phi
    assert float(problem.excess(plain)[-1]) / scale < worst_excess(descent(1.0, steps))
    assert float(problem.excess(ahead)[-1]) / scale < worst_excess(accelerated(1.0, steps))
