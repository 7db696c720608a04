"""Claims about regression losses and norms (Diehl sec. 1.3; Zhao sec. 2)."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, runs
from parnassus.losses.norms import Norm, find_norm_violation, l1_norm, l2_norm, p_norm
from parnassus.losses.regression import absolute_error, huber_loss, mean_power_error, mean_squared_error
from parnassus.probability import standard_normal

ORDERS = (1.0, 1.5, 2.0, 3.0, 10.0, torch.inf)
VECTOR = torch.tensor([3.0, -4.0], dtype=torch.float64)


def find_counterexample(candidate: Norm, dim: int = 4) -> tuple[str, float, float]:
    """The axiom that a candidate violates ("" if none is found) and both sides of it."""
    found = find_norm_violation(candidate, dim, generator=torch.Generator().manual_seed(0))
    return ("", 0.0, 0.0) if found is None else (found.axiom, found.left, found.right)


@claim("D1.3.4")
def the_best_constant_is_the_median_or_the_mean() -> Evidence:
    """Over constants the median minimises the mean absolute error, the mean the mean squared error (Diehl sec. 1.3)."""
    values = standard_normal(41).exp()
    grid = torch.linspace(0, 6, 60_001, dtype=torch.float64)[:, None]

    def best(power: float) -> Tensor:
        return grid[mean_power_error(grid.expand(-1, 41), values.expand(len(grid), -1), power=power).argmin(), 0]

    return all_of(
        absolute=close(best(1.0), values.median(), atol=1e-4),
        squared=close(best(2.0), values.mean(), atol=1e-4),
        they_differ=greater_equal(values.mean() - values.median(), 0.2),
    )


@claim("D1.3.4")
def mean_power_errors_are_mae_and_mse() -> Evidence:
    """Power 1 gives torch's mean absolute error, power 2 its mean squared error (Diehl sec. 1.3)."""
    prediction, target = standard_normal(50, 7), standard_normal(50, 7, seed=1)
    return all_of(
        mae=close(
            mean_power_error(prediction, target, power=1.0).mean(), functional.l1_loss(prediction, target), rtol=1e-14
        ),
        mse=close(
            mean_power_error(prediction, target, power=2.0).mean(), functional.mse_loss(prediction, target), rtol=1e-14
        ),
        book_sums_over_outputs=close(
            7 * mean_power_error(prediction, target, power=2.0).mean(),
            mean_squared_error(prediction, target),
            rtol=1e-14,
        ),
    )


@claim("D1.3.4")
def huber_loss_is_quadratic_then_linear() -> Evidence:
    """The Huber loss is ½r² up to δ and linear with slope δ beyond, with a continuous derivative (Diehl sec. 1.3)."""
    residual = torch.linspace(-5, 5, 401, dtype=torch.float64, requires_grad=True)
    zero = torch.zeros_like(residual)
    loss = huber_loss(residual, zero, delta=1.5)
    (derivative,) = torch.autograd.grad(loss.sum(), residual)
    return all_of(
        torch_loss=close(loss, functional.huber_loss(residual, zero, reduction="none", delta=1.5), rtol=1e-14),
        clipped_derivative=close(derivative, residual.clamp(-1.5, 1.5), atol=1e-14),
        below_half_square=less_equal(loss, residual.square() / 2),
        below_absolute=less_equal(loss, 1.5 * absolute_error(residual, zero)),
    )


@claim("Z2.2")
def counterexamples_are_found_exactly_for_non_norms() -> Evidence:
    """ℓ1, ℓ2, ℓp and ℓ∞ satisfy all axioms; p = ½, squared length and the number of nonzeros do not (Zhao sec. 2)."""
    passing: list[Norm] = [l1_norm, l2_norm, *[partial(p_norm, order=order) for order in ORDERS]]
    triangle = find_counterexample(lambda x: x.abs().sqrt().sum(-1).square())
    squared = find_counterexample(lambda x: x.square().sum(-1))
    count = find_counterexample(lambda x: (x != 0).double().sum(-1))
    first_entry = find_counterexample(lambda x: x[..., 0].abs())
    axioms = ["‖x + y‖ ≤ ‖x‖ + ‖y‖", "‖αx‖ = |α| ‖x‖", "‖αx‖ = |α| ‖x‖", "‖x‖ > 0"]
    violated = [axiom for axiom, _, _ in (triangle, squared, count, first_entry)]
    half = torch.eye(2, dtype=torch.float64).sum(0).sqrt().sum().square()
    return all_of(
        norms_pass=close(float(sum(find_counterexample(norm)[0] != "" for norm in passing)), 0.0),
        others_violate_their_axiom=close(float(sum(a == b for a, b in zip(violated, axioms, strict=True))), 4.0),
        triangle_gap=greater_equal(triangle[1] - triangle[2], 0.01),
        by_hand=close(half, 4.0, atol=1e-12),
    )


@erratum(
    "Z2.2", printed="‖x + y‖ = ‖x‖ + ‖y‖", right="‖x + y‖ ≤ ‖x‖ + ‖y‖, with equality for vectors in the same direction"
)
def the_triangle_inequality_is_not_an_equality() -> Correction:
    """One version of the notes prints = for ≤ in the second axiom (Zhao sec. 2)."""
    x, y = standard_normal(500, 3), standard_normal(500, 3, seed=1)
    sums = l2_norm(x) + l2_norm(y)
    return Correction(
        printed=close(l2_norm(x + y), sums, rtol=1e-6),
        corrected=all_of(
            at_most=less_equal(l2_norm(x + y), sums),
            strict_in_the_median=greater_equal((sums - l2_norm(x + y)).median(), 0.1),
            same_direction=close(l2_norm(x + 2 * x), l2_norm(x) + l2_norm(2 * x), rtol=1e-14),
        ),
    )


@claim("Z2.3")
def euclidean_and_manhattan_norms() -> Evidence:
    """‖(3, −4)‖₂ = 5 and ‖(3, −4)‖₁ = 7; ‖x‖₂ ≤ ‖x‖₁ ≤ √n ‖x‖₂, with both bounds attained (Zhao sec. 2)."""
    x = standard_normal(1_000, 6)
    axis, ones = torch.eye(6, dtype=torch.float64)[0], torch.ones(6, dtype=torch.float64)
    return all_of(
        euclid=close(l2_norm(VECTOR), 5.0),
        manhattan=close(l1_norm(VECTOR), 7.0),
        hypotenuse=close(l2_norm(x[:, :2]).square(), x[:, 0] ** 2 + x[:, 1] ** 2, rtol=1e-14),
        lower=less_equal(l2_norm(x), l1_norm(x)),
        upper=less_equal(l1_norm(x), sqrt(6) * l2_norm(x)),
        lower_attained=close(l1_norm(axis), l2_norm(axis)),
        upper_attained=close(l1_norm(ones), sqrt(6) * l2_norm(ones), rtol=1e-14),
    )


@claim("Z2.4")
def p_norms_decrease_to_the_maximum_norm() -> Evidence:
    """‖x‖_p is ℓ1 and ℓ2 for p = 1, 2, is non-increasing in p, and converges to max |x_i| (Zhao sec. 2)."""
    x = standard_normal(300, 5)
    by_order = torch.stack([p_norm(x, order=order) for order in ORDERS])
    return all_of(
        manhattan=close(p_norm(x, order=1.0), l1_norm(x), rtol=1e-14),
        euclid=close(p_norm(x, order=2.0), l2_norm(x), rtol=1e-14),
        non_increasing=less_equal(by_order.diff(dim=0), 0.0),
        largest=close(p_norm(x, order=torch.inf), x.abs().amax(-1)),
        limit=close(p_norm(x, order=1e4), x.abs().amax(-1), rtol=2e-4),
    )


@erratum("Z2.4", printed="‖x‖_p = (Σ x_iᵖ)^(1/p)", right="‖x‖_p = (Σ |x_i|ᵖ)^(1/p), p ≥ 1")
def p_norms_need_absolute_values() -> Correction:
    """Without absolute values (3, −4) has 1-norm −1, and its 3-norm is the cube root of −37 (Zhao sec. 2)."""

    def printed_norm(x: Tensor, order: float) -> Tensor:
        return x.pow(order).sum(-1).pow(1 / order)

    return Correction(
        printed=close(printed_norm(VECTOR, 1.0), l1_norm(VECTOR)),
        corrected=all_of(
            one_norm=close(p_norm(VECTOR, order=1.0), l1_norm(VECTOR), rtol=1e-14),
            printed_one_norm=close(printed_norm(VECTOR, 1.0), -1.0),
            printed_sum_of_cubes=close(VECTOR.pow(3).sum(), -37.0),
            three_norm_cubed=close(p_norm(VECTOR, order=3.0) ** 3, 91.0, rtol=1e-13),
        ),
    )


@erratum("Z2.4", printed="\\left(Σ … ⏎ ight)^{1/p}, a line break for \\r", right="\\left(Σ … \\right)^{1/p}")
def the_p_norm_formula_lacks_its_closing_bracket() -> Correction:
    """In the longer version a line break replaces the r of its right command, so TeX rejects it (Zhao sec. 2)."""
    from matplotlib.mathtext import MathTextParser  # imported here: only this claim uses it

    parser = MathTextParser("path")

    def parses(end: str) -> Evidence:
        formula = rf"$\left(\sum_{{i=1}}^n |x_i|^p{end})^{{1/p}}$"
        return runs(lambda: parser.parse(formula), unless=ValueError)

    x = standard_normal(20, 5)
    whole_power = torch.stack([sum(abs(entry) ** 3.0 for entry in row) ** (1 / 3.0) for row in x])
    return Correction(
        printed=parses("\night"),
        corrected=all_of(parses=parses(r"\right"), value=close(p_norm(x, order=3.0), whole_power, rtol=1e-12)),
    )
