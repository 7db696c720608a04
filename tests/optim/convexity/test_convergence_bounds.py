"""Convergence bounds: formulas, order among each other, and errors for problems that violate the assumptions."""

from dataclasses import replace

import pytest
import torch

from parnassus.optim import (
    OptimisationProblem,
    accelerated_bound,
    accelerated_worst_case,
    averaged_sgd_bound,
    averaged_sgd_rate,
    convex_bound,
    convex_worst_case,
    descent_lemma_decrease,
    ellipse,
    first_order_decrease,
    gradient_descent,
    huber_worst_case,
    infinity_norm,
    min_squared_gradient_bound,
    nesterov_descent,
    polyak_lojasiewicz_bound,
    smooth_problems,
    strongly_convex_bound,
    strongly_convex_worst_case,
)
from parnassus.probability import float64_tensor

T = torch.arange(1.0, 60.0, dtype=torch.float64)
VALLEY = ellipse(4.0)  # from (4, 1): curvatures ¼ and 1, R² = 17, excess ½ (16/4 + 1) = 2.5


def test_bounds_match_hand_computed_values() -> None:
    start = VALLEY.start[None]  # its gradient is (1, 1)
    torch.testing.assert_close(first_order_decrease(VALLEY, start, learning_rate=0.5), float64_tensor(1.0))
    torch.testing.assert_close(descent_lemma_decrease(VALLEY, start, learning_rate=0.5), float64_tensor(0.75))
    torch.testing.assert_close(min_squared_gradient_bound(VALLEY, float64_tensor(5)), float64_tensor(1.0))
    torch.testing.assert_close(polyak_lojasiewicz_bound(VALLEY, start), float64_tensor(4.0))
    torch.testing.assert_close(strongly_convex_bound(VALLEY, float64_tensor(0, 2)), float64_tensor(2.5, 2.5 * 0.5625))
    torch.testing.assert_close(
        strongly_convex_worst_case(VALLEY, float64_tensor(0, 1)), float64_tensor(2.5, 2.5 * 0.5625)
    )
    torch.testing.assert_close(convex_bound(VALLEY, float64_tensor(10), learning_rate=0.5), float64_tensor(1.7))
    torch.testing.assert_close(
        convex_worst_case(VALLEY, float64_tensor(10), learning_rate=0.5), float64_tensor(17 / 22)
    )
    torch.testing.assert_close(accelerated_bound(VALLEY, float64_tensor(3), learning_rate=0.5), float64_tensor(4.25))
    torch.testing.assert_close(accelerated_worst_case(VALLEY, float64_tensor(3)), float64_tensor(34 / 30))
    torch.testing.assert_close(averaged_sgd_bound(float64_tensor(25), radius=3.0, lipschitz=2.0), float64_tensor(1.2))
    assert averaged_sgd_rate(25, radius=3.0, lipschitz=2.0) == pytest.approx(0.3)


def test_exact_worst_case_is_below_its_bound() -> None:
    assert bool(
        (convex_worst_case(VALLEY, T, learning_rate=0.7) < convex_bound(VALLEY, T, learning_rate=0.7) / 2).all()
    )
    assert bool((accelerated_worst_case(VALLEY, T) < accelerated_bound(VALLEY, T, learning_rate=1.0)).all())
    assert bool((strongly_convex_worst_case(VALLEY, T) < strongly_convex_bound(VALLEY, T)).all())


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 25])
def test_nesterov_attains_its_worst_case_on_a_huber_loss(steps: int) -> None:
    problem = huber_worst_case((steps**2 + 5 * steps + 2) / 8, beta=2.0, radius=3.0)
    phi = nesterov_descent(problem.loss, problem.start, learning_rate=0.5, steps=steps).phi
    torch.testing.assert_close(problem.excess(phi)[-1:], accelerated_worst_case(problem, float64_tensor(steps)))


@pytest.mark.parametrize("name", ["quadratic", "ellipse", "ridge logistic", "log cosh", "quartic"])
def test_bound_holds_for_a_more_distant_start(name: str) -> None:
    """From three times the distance, where β still holds, the excess stays below the bound."""
    problem = smooth_problems()[name]
    if name != "quartic":  # its β holds for the first start only
        problem = replace(problem, start=3 * problem.start + 1)
    path = gradient_descent(problem.loss, problem.start, learning_rate=1 / problem.beta, steps=len(T))
    assert bool((problem.excess(path)[1:] <= convex_worst_case(problem, T, learning_rate=1 / problem.beta)).all())


@pytest.mark.parametrize("bound", [descent_lemma_decrease, convex_bound, convex_worst_case, accelerated_bound])
def test_nonsmooth_problem_raises_value_error(bound: object) -> None:
    nonsmooth = infinity_norm(torch.ones(2, dtype=torch.float64))
    assert callable(bound)
    with pytest.raises(ValueError, match="needs a bound on the curvature; got beta=inf"):
        bound(nonsmooth, nonsmooth.start[None] if bound is descent_lemma_decrease else T, learning_rate=0.1)


def test_violated_assumptions_raise_value_error() -> None:
    box, flat = smooth_problems()["egg box"], smooth_problems()["quartic"]
    with pytest.raises(ValueError, match=r"needs a convex function, alpha ≥ 0; got alpha=-7\.0"):
        convex_bound(box, T, learning_rate=0.1)
    with pytest.raises(ValueError, match=r"needs a strongly convex function, alpha > 0; got alpha=0\.0"):
        strongly_convex_bound(flat, T)
    with pytest.raises(ValueError, match=r"needs 0 < learning_rate ≤ 1/beta; got learning_rate=1\.5, beta=1\.0"):
        accelerated_bound(VALLEY, T, learning_rate=1.5)
    with pytest.raises(ValueError, match=r"t ≥ 1; got t=0\.0"):
        convex_bound(VALLEY, float64_tensor(0, 1), learning_rate=0.5)
    with pytest.raises(ValueError, match=r"got steps=0, radius=1\.0, lipschitz=1\.0"):
        averaged_sgd_rate(0, radius=1.0, lipschitz=1.0)


def test_rounding_of_the_rate_one_over_beta_is_tolerated() -> None:
    problem = OptimisationProblem(torch.sum, float64_tensor(1.0), float64_tensor(0.0), alpha=0.0, beta=49.0)
    assert bool(torch.isfinite(convex_bound(problem, T, learning_rate=1 / 49.0)).all())
