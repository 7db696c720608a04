"""Bounds of the convergence theorems of gradient descent, Nesterov and averaged SGD (book sec. 3.1, Diehl sec. 1.5).

Each function takes a problem with known start, minimiser and curvatures, and step counts t; it raises a ValueError if
the problem does not meet the theorem's assumptions.
"""

from math import isfinite, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.optim.landscapes.problems import OptimisationProblem


def step_counts(steps: int) -> Float[Tensor, " {steps}"]:
    """The step counts t = 1, …, steps, in float64."""
    return torch.arange(1, steps + 1, dtype=torch.float64)


def first_order_decrease(
    problem: OptimisationProblem, w: Float[Tensor, "count dim"], *, learning_rate: float
) -> Float[Tensor, " count"]:
    """η‖∇f(w)‖²: the decrease of f in one step to first order (book eq. 3.5)."""
    return learning_rate * problem.gradients(w).square().sum(-1)


def descent_lemma_decrease(
    problem: OptimisationProblem, w: Float[Tensor, "count dim"], *, learning_rate: float
) -> Float[Tensor, " count"]:
    """Smallest decrease of f in one gradient step from w by the descent lemma; f need not be convex.

    f(w) − f(w − η∇f(w)) ≥ η (1 − βη/2) ‖∇f(w)‖²          (book eq. 3.9)
                         = ‖∇f(w)‖²/(2β)  for η = 1/β     (book eq. 3.10)
    """
    _check_smooth(problem)
    return (1 - problem.beta * learning_rate / 2) * first_order_decrease(problem, w, learning_rate=learning_rate)


def min_squared_gradient_bound(problem: OptimisationProblem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """2β (f(w⁽⁰⁾) − f*)/t ≥ min ‖∇f‖² over the first t iterates, η = 1/β (book sec. 3.1)."""
    _check_smooth(problem)
    _check_positive_steps(t)
    return 2 * problem.beta * _initial_excess(problem) / t


def polyak_lojasiewicz_bound(problem: OptimisationProblem, w: Float[Tensor, "count dim"]) -> Float[Tensor, " count"]:
    """‖∇f(w)‖²/(2α) ≥ f(w) − f*: the Polyak-Łojasiewicz inequality (book eq. 3.15)."""
    _check_strongly_convex(problem)
    return problem.gradients(w).square().sum(-1) / (2 * problem.alpha)


def strongly_convex_bound(problem: OptimisationProblem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """(1 − α/β)ᵗ (f(w⁽⁰⁾) − f*) ≥ f(w⁽ᵗ⁾) − f*, η = 1/β (book eq. 3.18)."""
    _check_strongly_convex(problem)
    return _initial_excess(problem) * (1 - problem.alpha / problem.beta) ** t


def strongly_convex_worst_case(problem: OptimisationProblem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """(1 − α/β)²ᵗ (f(w⁽⁰⁾) − f*): the tight bound for strongly convex f, η = 1/β (Taylor et al. 2018).

    The factor is that of `strongly_convex_bound` squared; ½αw² attains the bound.
    """
    _check_strongly_convex(problem)
    return _initial_excess(problem) * (1 - problem.alpha / problem.beta) ** (2 * t)


def convex_bound(
    problem: OptimisationProblem, t: Float[Tensor, " steps"], *, learning_rate: float
) -> Float[Tensor, " steps"]:
    """‖w⁽⁰⁾ − w*‖²/(2ηt) ≥ f(w⁽ᵗ⁾) − f* for convex f, 0 < η ≤ 1/β, t ≥ 1 (book eq. 3.26, Diehl thm. 1.11)."""
    _check_convex(problem)
    _check_learning_rate(problem, learning_rate)
    _check_positive_steps(t)
    return problem.radius**2 / (2 * learning_rate * t)


def convex_worst_case(
    problem: OptimisationProblem, t: Float[Tensor, " steps"], *, learning_rate: float
) -> Float[Tensor, " steps"]:
    """β‖w⁽⁰⁾ − w*‖²/(4βηt + 2): the tight bound for convex f (Drori & Teboulle 2014).

    Slightly less than half of `convex_bound`; the Huber loss `huber_worst_case(βηt)` attains it.
    """
    _check_convex(problem)
    _check_learning_rate(problem, learning_rate)
    return problem.beta * problem.radius**2 / (4 * problem.beta * learning_rate * t + 2)


def accelerated_bound(
    problem: OptimisationProblem, t: Float[Tensor, " steps"], *, learning_rate: float
) -> Float[Tensor, " steps"]:
    """2‖w⁽⁰⁾ − w*‖²/(γ (t + 1)²) ≥ f(φ⁽ᵗ⁾) − f* for Nesterov's method, convex f, γ ≤ 1/β (book sec. 3.2)."""
    _check_convex(problem)
    _check_learning_rate(problem, learning_rate)
    return 2 * problem.radius**2 / (learning_rate * (t + 1).square())


def accelerated_worst_case(problem: OptimisationProblem, t: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """2β‖w⁽⁰⁾ − w*‖²/((t + 2)(t + 3)): the tight bound for φ⁽ᵗ⁾ of Nesterov's method, γ = 1/β (Taylor et al. 2017).

    The Huber loss `huber_worst_case((t² + 5t + 2)/8)` attains it; that no convex function is worse is known
    numerically.
    """
    _check_convex(problem)
    return 2 * problem.beta * problem.radius**2 / ((t + 2) * (t + 3))


def averaged_sgd_bound(t: Float[Tensor, " steps"], *, radius: float, lipschitz: float) -> Float[Tensor, " steps"]:
    """Rρ/√t ≥ E f(w̄) − f* for the mean w̄ of the first t iterates of SGD (book sec. 3.1).

    Assumes convex f, E‖g‖² ≤ ρ², ‖w⁽⁰⁾ − w*‖ ≤ R and the learning rate `averaged_sgd_rate`; f need not be smooth.
    """
    _check_positive_steps(t)
    return radius * lipschitz / t.sqrt()


def averaged_sgd_rate(steps: int, *, radius: float, lipschitz: float) -> float:
    """η = R/(ρ√T), the learning rate that minimises `averaged_sgd_bound` (book sec. 3.1)."""
    if steps < 1 or not radius > 0 or not lipschitz > 0:
        raise ValueError(
            f"need steps ≥ 1, radius > 0 and lipschitz > 0; got steps={steps}, radius={radius}, lipschitz={lipschitz}"
        )
    return radius / (lipschitz * sqrt(steps))


def _initial_excess(problem: OptimisationProblem) -> Float[Tensor, ""]:
    return problem.excess(problem.start[None])[0]


def _check_smooth(problem: OptimisationProblem) -> None:
    if not isfinite(problem.beta):
        raise ValueError(f"the theorem needs a bound on the curvature; got beta={problem.beta}")


def _check_convex(problem: OptimisationProblem) -> None:
    _check_smooth(problem)
    if not problem.alpha >= 0:
        raise ValueError(f"the theorem needs a convex function, alpha ≥ 0; got alpha={problem.alpha}")


def _check_strongly_convex(problem: OptimisationProblem) -> None:
    _check_smooth(problem)
    if not problem.alpha > 0:
        raise ValueError(f"the theorem needs a strongly convex function, alpha > 0; got alpha={problem.alpha}")


def _check_learning_rate(problem: OptimisationProblem, learning_rate: float) -> None:
    if not 0 < learning_rate * problem.beta <= 1 + 1e-12:
        raise ValueError(
            f"the theorem needs 0 < learning_rate ≤ 1/beta; got learning_rate={learning_rate}, beta={problem.beta}"
        )


def _check_positive_steps(t: Float[Tensor, " steps"]) -> None:
    if not bool((t >= 1).all()):
        raise ValueError(f"the bound needs t ≥ 1; got t={float(t.min())}")
