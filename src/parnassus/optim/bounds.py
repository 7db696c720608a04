"""How fast descent must be: the bounds of the convergence theorems (book sec. 3.1, Diehl sec. 1.5).

Each takes a problem that knows its start, minimiser and curvatures, and numbers of steps t; it refuses a problem that
does not meet the theorem's assumptions.
"""

from math import isfinite, sqrt

from jaxtyping import Float
from torch import Tensor

from parnassus.optim.problems import Problem


def first_order_decrease(problem: Problem, w: Float[Tensor, "count dim"], *, rate: float) -> Float[Tensor, " count"]:
    """η‖∇f(w)‖²: what a step gains where f were as straight as its tangent (book eq. 3.5)."""
    return rate * problem.slopes(w).square().sum(-1)


def least_decrease(problem: Problem, w: Float[Tensor, "count dim"], *, rate: float) -> Float[Tensor, " count"]:
    """What a step of descent from w gains at least, convex or not: the descent lemma.

    f(w) − f(w − η∇f(w)) ≥ η (1 − βη/2) ‖∇f(w)‖²          (book eq. 3.9)
                         = ‖∇f(w)‖²/(2β)  for η = 1/β     (book eq. 3.10)
    """
    _require_smooth(problem)
    return (1 - problem.beta * rate / 2) * first_order_decrease(problem, w, rate=rate)


def flattest_slope_bound(problem: Problem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """2β (f(w⁽⁰⁾) − f*)/t ≥ min ‖∇f‖² over the first t places, η = 1/β: the descent lemma summed (book sec. 3.1)."""
    _require_smooth(problem)
    _require_steps(t)
    return 2 * problem.beta * _first_excess(problem) / t


def excess_from_slope(problem: Problem, w: Float[Tensor, "count dim"]) -> Float[Tensor, " count"]:
    """‖∇f(w)‖²/(2α) ≥ f(w) − f*: a small slope means a small excess (book eq. 3.15)."""
    _require_strong(problem)
    return problem.slopes(w).square().sum(-1) / (2 * problem.alpha)


def strongly_convex_bound(problem: Problem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """(1 − α/β)ᵗ (f(w⁽⁰⁾) − f*) ≥ f(w⁽ᵗ⁾) − f*, η = 1/β (book eq. 3.18)."""
    _require_strong(problem)
    return _first_excess(problem) * (1 - problem.alpha / problem.beta) ** t


def strongly_convex_worst(problem: Problem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """(1 − α/β)²ᵗ (f(w⁽⁰⁾) − f*): the least bound that holds for every such f, η = 1/β (Taylor et al. 2018).

    The factor of `strongly_convex_bound` squared; ½αw² attains it.
    """
    _require_strong(problem)
    return _first_excess(problem) * (1 - problem.alpha / problem.beta) ** (2 * t)


def convex_bound(problem: Problem, t: Float[Tensor, " steps"], *, rate: float) -> Float[Tensor, " steps"]:
    """‖w⁽⁰⁾ − w*‖²/(2ηt) ≥ f(w⁽ᵗ⁾) − f* for convex f, 0 < η ≤ 1/β, t ≥ 1 (book eq. 3.26, Diehl thm. 1.11)."""
    _require_convex(problem)
    _require_rate(problem, rate)
    _require_steps(t)
    return problem.radius**2 / (2 * rate * t)


def convex_worst(problem: Problem, t: Float[Tensor, " steps"], *, rate: float) -> Float[Tensor, " steps"]:
    """β‖w⁽⁰⁾ − w*‖²/(4βηt + 2): the least bound that holds for every convex f (Drori & Teboulle 2014).

    A little less than half of `convex_bound`; the Huber loss `slowest(βηt)` attains it.
    """
    _require_convex(problem)
    _require_rate(problem, rate)
    return problem.beta * problem.radius**2 / (4 * problem.beta * rate * t + 2)


def accelerated_bound(problem: Problem, t: Float[Tensor, " steps"], *, rate: float) -> Float[Tensor, " steps"]:
    """2‖w⁽⁰⁾ − w*‖²/(γ (t + 1)²) ≥ f(φ⁽ᵗ⁾) − f* for Nesterov's method, convex f, γ ≤ 1/β (book sec. 3.2)."""
    _require_convex(problem)
    _require_rate(problem, rate)
    return 2 * problem.radius**2 / (rate * (t + 1).square())


def accelerated_worst(problem: Problem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """2β‖w⁽⁰⁾ − w*‖²/((t + 2)(t + 3)) for γ = 1/β, the least that can be promised of φ⁽ᵗ⁾ (Taylor et al. 2017).

    The Huber loss `slowest((t² + 5t + 2)/8)` attains it; that no convex function is worse is known by computation.
    """
    _require_convex(problem)
    return 2 * problem.beta * problem.radius**2 / ((t + 2) * (t + 3))


def averaged_bound(t: Float[Tensor, " steps"], *, radius: float, lipschitz: float) -> Float[Tensor, " steps"]:
    """Rρ/√t ≥ E f(w̄) − f* for the mean w̄ of the first t places of stochastic descent (book sec. 3.1).

    Convex f, E‖g‖² ≤ ρ², ‖w⁽⁰⁾ − w*‖ ≤ R, and the rate of `averaging_rate`; smoothness is not needed.
    """
    _require_steps(t)
    return radius * lipschitz / t.sqrt()


def averaging_rate(steps: int, *, radius: float, lipschitz: float) -> float:
    """η = R/(ρ√T), which makes `averaged_bound` least (book sec. 3.1)."""
    if steps < 1 or not radius > 0 or not lipschitz > 0:
        raise ValueError(
            f"need steps ≥ 1, radius > 0 and lipschitz > 0; got steps={steps}, radius={radius}, lipschitz={lipschitz}"
        )
    return radius / (lipschitz * sqrt(steps))


def _first_excess(problem: Problem) -> Float[Tensor, ""]:
    return problem.excess(problem.start[None])[0]


def _require_smooth(problem: Problem) -> None:
    if not isfinite(problem.beta):
        raise ValueError(f"the theorem needs a bound on the curvature; got beta={problem.beta}")


def _require_convex(problem: Problem) -> None:
    _require_smooth(problem)
    if not problem.alpha >= 0:
        raise ValueError(f"the theorem needs a convex function, alpha ≥ 0; got alpha={problem.alpha}")


def _require_strong(problem: Problem) -> None:
    _require_smooth(problem)
    if not problem.alpha > 0:
        raise ValueError(f"the theorem needs a strongly convex function, alpha > 0; got alpha={problem.alpha}")


def _require_rate(problem: Problem, rate: float) -> None:
    if not 0 < rate * problem.beta <= 1 + 1e-12:
        raise ValueError(f"the theorem needs 0 < rate ≤ 1/beta; got rate={rate}, beta={problem.beta}")


def _require_steps(t: Float[Tensor, " steps"]) -> None:
    if not bool((t >= 1).all()):
        raise ValueError(f"the bound holds from the first step on, t ≥ 1; got t={float(t.min())}")
