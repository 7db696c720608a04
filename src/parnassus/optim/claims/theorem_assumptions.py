"""Claims about assumptions that the notes omit or misstate (Diehl thm. 1.11, Zhao sec. 12)."""

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.optim.claims.convergence_bounds import convex_problems
from parnassus.optim.claims.convex_functions import NONSMOOTH_CONVEX, SMOOTH_CONVEX
from parnassus.optim.claims.convex_sets import lp_ball, sample_cube
from parnassus.optim.convexity.convergence_bounds import step_counts
from parnassus.optim.convexity.convex_functions import nearby_lower_point
from parnassus.optim.landscapes.problems import OptimisationProblem
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.probability import uniform_samples


def bound_margin(problem: OptimisationProblem, fraction: float, *, steps: int = 20) -> Tensor:
    """Minimum over t of ‖θ₀ − θ*‖²/(2ηt) − (C(θ_t) − min C), with η = fraction/L of either sign."""
    eta, gradient = fraction / problem.beta, grad(problem.loss)
    path = [problem.start]
    for _ in range(steps):
        path.append(path[-1] - eta * gradient(path[-1]))
    bound = problem.radius**2 / (2 * eta * step_counts(steps))
    return (bound - problem.excess(torch.stack(path))[1:]).min()


@erratum("D1.5.4", printed="a rate η smaller than 1/L", right="0 < η ≤ 1/L")
def a_rate_below_one_over_l_may_be_negative() -> Correction:
    """A negative η is smaller than 1/L, ascends and violates the bound; η = 1/L is admissible (Diehl thm. 1.11)."""
    problems = convex_problems().values()

    def margins(*fractions: float) -> Tensor:
        return torch.stack([bound_margin(problem, each) for problem in problems for each in fractions])

    return Correction(
        printed=greater_equal(margins(0.5, -0.1), 0.0), corrected=greater_equal(margins(0.05, 0.5, 1.0), 0.0)
    )


@erratum("D1.5.4", printed="C(θ_t) − min C ≤ ‖θ₀ − θ*‖²/(2ηt) with θ* undefined", right="θ* ∈ argmin C, and t ≥ 1")
def the_distance_is_to_a_minimiser() -> Correction:
    """The bound holds with the distance to a minimiser; the distance to another point may be 0 (Diehl thm. 1.11)."""
    problem = next(iter(convex_problems().values()))
    eta, t = 0.5 / problem.beta, step_counts(40)
    excess = problem.excess(gradient_descent(problem.loss, problem.start, learning_rate=eta, steps=40))[1:]

    def bound(reference: Tensor) -> Tensor:
        return (problem.start - reference).square().sum() / (2 * eta * t)

    return Correction(
        printed=less_equal(excess, bound(problem.start)), corrected=less_equal(excess, bound(problem.minimiser))
    )


@claim("D1.5.4")
def values_converge_faster_than_iterates() -> Evidence:
    """On |θ|ᵖ the value decays as t^(−p/(p−2)), the distance only as t^(−1/(p−2)) (Diehl thm. 1.11)."""
    t = [2_000 * 2**k for k in range(6)]
    exponents = {}
    for p in (4, 8, 12):
        eta, theta, iterates = 1 / (p * (p - 1)), 1.0, []
        for step in range(1, t[-1] + 1):
            theta -= eta * p * theta ** (p - 1)
            if step in t:
                iterates.append(theta)
        distance = torch.tensor(iterates, dtype=torch.float64)
        exponents[f"distance_for_power_{p}"] = rate(torch.tensor(t), distance, -1 / (p - 2), atol=0.01)
        exponents[f"value_for_power_{p}"] = rate(torch.tensor(t), distance**p, -p / (p - 2), atol=0.05)
    starts = torch.tensor([[2.0, -1.0], [-0.5, 3.0]], dtype=torch.float64)
    ends = [gradient_descent(lambda w: w.sum().square(), start, learning_rate=0.2, steps=60)[-1] for start in starts]
    return all_of(
        **exponents,
        final_points_are_minimisers=close(torch.stack(ends).sum(1), 0.0, atol=1e-9),
        which_depends_on_the_start=greater_equal((ends[0] - ends[1]).norm(), 1.0),
    )


@erratum("Z12.2", printed="λa + (1 − λ)b ∈ X, λ not specified", right="λa + (1 − λ)b ∈ X for λ ∈ [0, 1]")
def convex_weights_lie_in_the_unit_interval() -> Correction:
    """Over all real λ the points fill a line, which only affine sets contain: a disc does not (Zhao sec. 12)."""
    points = sample_cube(1_200, 2, half_width=1.0)
    a, b = points[lp_ball(2.0)(points)][:800].chunk(2)

    def fraction_inside(weights: Tensor) -> Tensor:
        return lp_ball(2.0)(weights * a + (1 - weights) * b).double().mean()

    weights = uniform_samples(400, 1)
    line = torch.tensor([1.0, 2.0], dtype=torch.float64)
    on_line = ((5 * a[:, :1] - 4 * b[:, :1]) * line) @ torch.tensor([-2.0, 1.0], dtype=torch.float64)
    return Correction(
        printed=close(fraction_inside(6 * weights - 3), 1.0),
        corrected=all_of(
            weights_between_0_and_1=close(fraction_inside(weights), 1.0),
            line_for_every_weight=close(on_line, 0.0, atol=1e-12),
        ),
    )


@erratum(
    "Z12.7",
    printed="the lower point contradicts that x* is not the global minimum",
    right="the lower point contradicts that x* is a local minimum",
)
def the_contradiction_is_with_the_local_minimum() -> Correction:
    """The proof assumes that x* is not a global minimum and contradicts that it is a local one (Zhao sec. 12)."""
    star, lower = torch.tensor([1.5, -1.0]).double(), torch.tensor([0.2, 0.1]).double()
    functions = (SMOOTH_CONVEX["x²"], SMOOTH_CONVEX["log-sum-exp"], NONSMOOTH_CONVEX["|x|"], NONSMOOTH_CONVEX["length"])
    pairs = [(f, nearby_lower_point(f, star, lower, radius=radius)) for f in functions for radius in (1e-1, 1e-3, 1e-6)]
    return Correction(
        printed=less_equal(torch.stack([f(star) - f(lower) for f in functions]), 0.0),  # x* is global
        corrected=all_of(
            lower_within_every_radius=greater_equal(torch.stack([f(star) - near.value for f, near in pairs]), 1e-8),
            not_global_as_assumed=greater_equal(torch.stack([f(star) - f(lower) for f in functions]), 0.1),
        ),
    )
