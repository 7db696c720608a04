"""Claims about Taylor expansions with remainder in the convergence proofs (book sec. 3.1)."""

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.optim.claims.convergence_bounds import strongly_convex_problems
from parnassus.optim.optimisers.gradient_descent import gradient_descent

EXPANSION_POINTS = torch.linspace(0.5, 3.0, 11, dtype=torch.float64)
"""Points from which to expand cosh, whose minimiser is 0 and whose curvature cosh is at least 1."""


def intermediate_point(start: Tensor, end: Tensor) -> Tensor:
    """The ξ of f(end) = f(start) + f′(start)(end − start) + ½ f″(ξ)(end − start)² for f = cosh, where f″ = f."""
    step = end - start
    return (2 * (end.cosh() - start.cosh() - start.sinh() * step) / step.square()).acosh()


def second_order_expansion(start: Tensor, end: Tensor, at: Tensor) -> Tensor:
    """f(start) + f′(start)(end − start) + ½ f″(at)(end − start)² for f = cosh."""
    step = end - start
    return start.cosh() + start.sinh() * step + at.cosh() * step.square() / 2


@erratum("B3.1-4", printed="∇²f(ξ), with the ξ of eq. 3.7", right="∇²f(ξ*), with the ξ* of eq. 3.12")
def intermediate_points_of_two_expansions_differ() -> Correction:
    """The ξ of w⁽ᵗ⁾ → w⁽ᵗ⁺¹⁾ is not the ξ* of w⁽ᵗ⁾ → w*, whose expansion fails with ξ (book eq. 3.12).

    f″ is monotone between w⁽ᵗ⁾ and w*, so that only one point makes the expansion exact.
    """
    minimiser = torch.zeros_like(EXPANSION_POINTS)
    next_point = gradient_descent(lambda w: w.cosh().sum(), EXPANSION_POINTS, learning_rate=0.1, steps=1)[-1]
    xi, xi_star = intermediate_point(EXPANSION_POINTS, next_point), intermediate_point(EXPANSION_POINTS, minimiser)
    fractions = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
    errors = (
        second_order_expansion(EXPANSION_POINTS, minimiser, fractions[:, None] * EXPANSION_POINTS) - minimiser.cosh()
    )
    return Correction(
        printed=close(second_order_expansion(EXPANSION_POINTS, minimiser, xi), minimiser.cosh(), atol=0.01),
        corrected=all_of(
            exact=close(second_order_expansion(EXPANSION_POINTS, minimiser, xi_star), minimiser.cosh(), atol=1e-12),
            between_start_and_end=greater_equal(torch.minimum(xi_star, EXPANSION_POINTS - xi_star), 0.0),
            xi_is_exact_for_its_own_step=close(
                second_order_expansion(EXPANSION_POINTS, next_point, xi), next_point.cosh(), atol=1e-12
            ),
            points_differ=greater_equal(xi - xi_star, 0.01),
            too_small_at_the_lower_end=greater_equal(-errors[0], 0.0),
            too_large_at_the_upper_end=greater_equal(errors[-1], 0.0),
            alpha_bounds_both=greater_equal(torch.stack([xi.cosh(), xi_star.cosh()]), 1.0),
        ),
    )


@claim("B3.1-4")
def strongly_convex_functions_have_a_quadratic_lower_bound() -> Evidence:
    """g(v) = f(w) + ∇f(w)ᵀ(v − w) + α/2 ‖v − w‖² ≤ f(v), with minimum f(w) − ‖∇f(w)‖²/(2α) at w − ∇f(w)/α.

    Hence this minimum is at most f(w*) (book eqs. 3.13-3.15).
    """
    generator = torch.Generator().manual_seed(0)
    margins, gradients, minima, predicted = [], [], [], []
    for problem in strongly_convex_problems():
        w, v = (3 * torch.randn(50, len(problem.start), generator=generator, dtype=torch.float64) for _ in range(2))
        value, gradient, alpha = problem.excess(w), problem.gradients(w), problem.alpha
        minimiser = w - gradient / alpha
        margins.append(problem.excess(v) - quadratic_lower_bound(v, w, value, gradient, alpha))
        gradients.append(
            grad(lambda v, *rest: quadratic_lower_bound(v, *rest).sum())(minimiser, w, value, gradient, alpha)
            / gradient.norm()
        )
        minima.append(quadratic_lower_bound(minimiser, w, value, gradient, alpha))
        predicted.append(value - gradient.square().sum(-1) / (2 * alpha))
    return all_of(
        lower_bound=greater_equal(torch.cat(margins), -1e-9),
        gradient_vanishes_at_its_minimiser=close(torch.cat([each.flatten() for each in gradients]), 0.0, atol=1e-12),
        minimum_value=close(torch.cat(minima), torch.cat(predicted), rtol=1e-9, atol=1e-9),
        below_the_minimum_of_f=less_equal(torch.cat(minima), 1e-9),
    )


def quadratic_lower_bound(v: Tensor, w: Tensor, value: Tensor, gradient: Tensor, alpha: float) -> Tensor:
    """f(w) + ∇f(w)ᵀ(v − w) + α/2 ‖v − w‖² for each pair of rows (book eq. 3.14)."""
    return value + (gradient * (v - w)).sum(-1) + alpha / 2 * (v - w).square().sum(-1)
