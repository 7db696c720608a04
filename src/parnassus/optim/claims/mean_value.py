"""Claims about the point where a Hessian is taken in a Taylor expansion (book sec. 3.1)."""

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.optim.claims.convergence import strong_problems

W = torch.linspace(0.5, 3.0, 11, dtype=torch.float64)
"""Places from which to expand cosh, whose minimiser is 0 and whose curvature cosh is at least 1."""


def middle(start: Tensor, end: Tensor) -> Tensor:
    """The ξ of f(end) = f(start) + f′(start)(end − start) + ½ f″(ξ)(end − start)² for f = cosh, where f″ = f."""
    way = end - start
    return (2 * (end.cosh() - start.cosh() - start.sinh() * way) / way.square()).acosh()


def expanded(start: Tensor, end: Tensor, at: Tensor) -> Tensor:
    """f(start) + f′(start)(end − start) + ½ f″(at)(end − start)² for f = cosh."""
    way = end - start
    return start.cosh() + start.sinh() * way + at.cosh() * way.square() / 2


@erratum("B3.1-4", printed="∇²f(ξ), with the ξ of eq. 3.7", right="∇²f(ξ*), with the ξ* of eq. 3.12")
def the_way_to_the_minimiser_has_its_own_point() -> Correction:
    """The ξ of the step w⁽ᵗ⁾ → w⁽ᵗ⁺¹⁾ is not the ξ* of the way to w*: with it the expansion fails (book eq. 3.12).

    Nor will any other point between do: f″ is monotone there, so that only one makes the expansion exact.
    """
    least, after = torch.zeros_like(W), W - 0.1 * W.sinh()
    xi, xi_star = middle(W, after), middle(W, least)
    shares = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
    others = expanded(W, least, shares[:, None] * W) - least.cosh()
    return Correction(
        printed=close(expanded(W, least, xi), least.cosh(), atol=0.01),
        corrected=all_of(
            exact=close(expanded(W, least, xi_star), least.cosh(), atol=1e-12),
            on_the_way=at_least(torch.minimum(xi_star, W - xi_star), 0.0),
            the_other_serves_its_own_step=close(expanded(W, after, xi), after.cosh(), atol=1e-12),
            they_are_apart=at_least(xi - xi_star, 0.01),
            lower_end_undershoots=at_least(-others[0], 0.0),
            upper_end_overshoots=at_least(others[-1], 0.0),
            alpha_bounds_both=at_least(torch.stack([xi.cosh(), xi_star.cosh()]), 1.0),
        ),
    )


@claim("B3.1-4")
def a_parabola_lies_below_a_strongly_convex_function() -> Evidence:
    """g(v) = f(w) + ∇f(w)ᵀ(v − w) + α/2 ‖v − w‖² ≤ f(v); it is least, f(w) − ‖∇f(w)‖²/(2α), at w − ∇f(w)/α.

    That this least is below f(w*) is the whole argument (book eqs. 3.13-3.15).
    """
    source = torch.Generator().manual_seed(0)
    spare, flat, least, predicted = [], [], [], []
    for problem in strong_problems():
        w, v = (3 * torch.randn(50, len(problem.start), generator=source, dtype=torch.float64) for _ in range(2))
        value, slope, alpha = problem.excess(w), problem.slopes(w), problem.alpha
        bottom = w - slope / alpha
        spare.append(problem.excess(v) - parabola(v, w, value, slope, alpha))
        flat.append(grad(lambda v, *at: parabola(v, *at).sum())(bottom, w, value, slope, alpha) / slope.norm())
        least.append(parabola(bottom, w, value, slope, alpha))
        predicted.append(value - slope.square().sum(-1) / (2 * alpha))
    return all_of(
        below=at_least(torch.cat(spare), -1e-9),
        level_at_its_bottom=close(torch.cat([each.flatten() for each in flat]), 0.0, atol=1e-12),
        its_least_value=close(torch.cat(least), torch.cat(predicted), rtol=1e-9, atol=1e-9),
        not_above_the_minimum=at_most(torch.cat(least), 1e-9),
    )


def parabola(v: Tensor, w: Tensor, value: Tensor, slope: Tensor, alpha: float) -> Tensor:
    """f(w) + ∇f(w)ᵀ(v − w) + α/2 ‖v − w‖², a row for each pair (book eq. 3.14)."""
    return value + (slope * (v - w)).sum(-1) + alpha / 2 * (v - w).square().sum(-1)
