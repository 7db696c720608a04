"""Claims about regression losses and norms (Diehl sec. 1.3; Zhao sec. 2)."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, runs
from parnassus.losses.norms import Norm, l1_norm, l2_norm, norm_violation, p_norm
from parnassus.losses.regression import absolute_error, huber, mean_power_error
from parnassus.losses.squared import mean_squared_error

ORDERS = (1.0, 1.5, 2.0, 3.0, 10.0, torch.inf)
LEG = torch.tensor([3.0, -4.0], dtype=torch.float64)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def witness_against(candidate: Norm, dim: int = 4) -> tuple[str, float, float]:
    """The axiom that a candidate breaks ("" if none is found) and both sides of it."""
    found = norm_violation(candidate, dim, generator=torch.Generator().manual_seed(0))
    return ("", 0.0, 0.0) if found is None else (found.axiom, found.left, found.right)


@claim("D1.3.4")
def the_best_constant_is_median_or_mean() -> Evidence:
    """Of all constants the median has the least absolute error, the mean the least squared one (Diehl sec. 1.3)."""
    values = normals(41).exp()
    grid = torch.linspace(0, 6, 60_001, dtype=torch.float64)[:, None]

    def best(power: float) -> Tensor:
        return grid[mean_power_error(grid.expand(-1, 41), values.expand(len(grid), -1), power=power).argmin(), 0]

    return all_of(
        absolute=close(best(1.0), values.median(), atol=1e-4),
        squared=close(best(2.0), values.mean(), atol=1e-4),
        they_differ=at_least(values.mean() - values.median(), 0.2),
    )


@claim("D1.3.4")
def the_powers_are_mae_and_mse() -> Evidence:
    """Power 1 is the mean absolute error and power 2 the mean squared error of the library (Diehl sec. 1.3)."""
    prediction, target = normals(50, 7), normals(50, 7, seed=1)
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
def huber_lies_between_squares_and_absolute_values() -> Evidence:
    """Huber's loss is ½r² up to δ, grows with slope δ beyond, and bends smoothly between (Diehl sec. 1.3)."""
    residual = torch.linspace(-5, 5, 401, dtype=torch.float64, requires_grad=True)
    zero = torch.zeros_like(residual)
    loss = huber(residual, zero, border=1.5)
    (slope,) = torch.autograd.grad(loss.sum(), residual)
    return all_of(
        library=close(loss, functional.huber_loss(residual, zero, reduction="none", delta=1.5), rtol=1e-14),
        clipped_slope=close(slope, residual.clamp(-1.5, 1.5), atol=1e-14),
        below_half_square=at_most(loss, residual.square() / 2),
        below_absolute=at_most(loss, 1.5 * absolute_error(residual, zero)),
    )


@claim("Z2.2")
def the_checker_knows_norms_from_the_rest() -> Evidence:
    """ℓ1, ℓ2, ℓp and ℓ∞ pass all axioms; p = ½, squared length and the count of nonzeros each leave a witness."""
    passing: list[Norm] = [l1_norm, l2_norm, *[partial(p_norm, order=order) for order in ORDERS]]
    triangle = witness_against(lambda x: x.abs().sqrt().sum(-1).square())
    squared = witness_against(lambda x: x.square().sum(-1))
    count = witness_against(lambda x: (x != 0).double().sum(-1))
    first_entry = witness_against(lambda x: x[..., 0].abs())
    axioms = ["‖x + y‖ ≤ ‖x‖ + ‖y‖", "‖αx‖ = |α| ‖x‖", "‖αx‖ = |α| ‖x‖", "‖x‖ > 0"]
    named = [axiom for axiom, _, _ in (triangle, squared, count, first_entry)]
    half = torch.eye(2, dtype=torch.float64).sum(0).sqrt().sum().square()
    return all_of(
        norms_pass=close(float(sum(witness_against(norm)[0] != "" for norm in passing)), 0.0),
        the_rest_break_their_axiom=close(float(sum(a == b for a, b in zip(named, axioms, strict=True))), 4.0),
        a_real_witness=at_least(triangle[1] - triangle[2], 0.01),
        by_hand=close(half, 4.0, atol=1e-12),
    )


@erratum("Z2.2", printed="‖x + y‖ = ‖x‖ + ‖y‖", right="‖x + y‖ ≤ ‖x‖ + ‖y‖, equal for vectors of one direction")
def the_triangle_inequality_is_no_equation() -> Correction:
    """One version of the notes prints = for ≤ in the second axiom (Zhao sec. 2)."""
    x, y = normals(500, 3), normals(500, 3, seed=1)
    sums = l2_norm(x) + l2_norm(y)
    return Correction(
        printed=close(l2_norm(x + y), sums, rtol=1e-6),
        corrected=all_of(
            at_most=at_most(l2_norm(x + y), sums),
            strict_for_most=at_least((sums - l2_norm(x + y)).median(), 0.1),
            one_direction=close(l2_norm(x + 2 * x), l2_norm(x) + l2_norm(2 * x), rtol=1e-14),
        ),
    )


@claim("Z2.3")
def euclid_and_manhattan() -> Evidence:
    """‖(3, −4)‖₂ = 5 and ‖(3, −4)‖₁ = 7; ‖x‖₂ ≤ ‖x‖₁ ≤ √n ‖x‖₂, both ends reached (Zhao sec. 2)."""
    x = normals(1_000, 6)
    axis, even = torch.eye(6, dtype=torch.float64)[0], torch.ones(6, dtype=torch.float64)
    return all_of(
        euclid=close(l2_norm(LEG), 5.0),
        manhattan=close(l1_norm(LEG), 7.0),
        hypotenuse=close(l2_norm(x[:, :2]).square(), x[:, 0] ** 2 + x[:, 1] ** 2, rtol=1e-14),
        lower=at_most(l2_norm(x), l1_norm(x)),
        upper=at_most(l1_norm(x), sqrt(6) * l2_norm(x)),
        lower_reached=close(l1_norm(axis), l2_norm(axis)),
        upper_reached=close(l1_norm(even), sqrt(6) * l2_norm(even), rtol=1e-14),
    )


@claim("Z2.4")
def p_norms_shrink_towards_the_largest_entry() -> Evidence:
    """‖x‖_p is ℓ1 and ℓ2 for p = 1, 2, never grows with p, and tends to max |x_i| (Zhao sec. 2)."""
    x = normals(300, 5)
    by_order = torch.stack([p_norm(x, order=order) for order in ORDERS])
    return all_of(
        manhattan=close(p_norm(x, order=1.0), l1_norm(x), rtol=1e-14),
        euclid=close(p_norm(x, order=2.0), l2_norm(x), rtol=1e-14),
        shrinks=at_most(by_order.diff(dim=0), 0.0),
        largest=close(p_norm(x, order=torch.inf), x.abs().amax(-1)),
        limit=close(p_norm(x, order=1e4), x.abs().amax(-1), rtol=2e-4),
    )


@erratum("Z2.4", printed="‖x‖_p = (Σ x_iᵖ)^(1/p)", right="‖x‖_p = (Σ |x_i|ᵖ)^(1/p), p ≥ 1")
def p_norms_need_absolute_values() -> Correction:
    """Without absolute values (3, −4) has 1-norm −1, and its 3-norm is the cube root of −37 (Zhao sec. 2)."""

    def printed(x: Tensor, order: float) -> Tensor:
        return x.pow(order).sum(-1).pow(1 / order)

    return Correction(
        printed=close(printed(LEG, 1.0), l1_norm(LEG)),
        corrected=all_of(
            right=close(p_norm(LEG, order=1.0), l1_norm(LEG), rtol=1e-14),
            printed_is_minus_one=close(printed(LEG, 1.0), -1.0),
            printed_cube_root_is_of=close(LEG.pow(3).sum(), -37.0),
            right_cube_root_is_of=close(p_norm(LEG, order=3.0) ** 3, 91.0, rtol=1e-13),
        ),
    )


@erratum("Z2.4", printed="\\left(Σ … ⏎ ight)^{1/p}, a line break for \\r", right="\\left(Σ … \\right)^{1/p}")
def the_formula_lost_its_closing_bracket() -> Correction:
    """In the longer version a line break has eaten the r of its right: no reader of TeX takes that (Zhao sec. 2)."""
    from matplotlib.mathtext import MathTextParser  # only this claim needs it

    parser = MathTextParser("path")

    def reads(end: str) -> Evidence:
        formula = rf"$\left(\sum_{{i=1}}^n |x_i|^p{end})^{{1/p}}$"
        return runs(lambda: parser.parse(formula), unless=ValueError)

    return Correction(printed=reads("\night"), corrected=reads(r"\right"))
