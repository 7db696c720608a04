"""Conditions that the statements need and the notes leave out or mistake (Diehl thm. 1.11, Zhao sec. 12)."""

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.optim.claims.convergence import convex_problems, counted
from parnassus.optim.claims.convex_sets import ball, cloud
from parnassus.optim.claims.convexity import CONVEX, CONVEX_WITH_KINKS
from parnassus.optim.convexity import lower_nearby
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.problems import Problem


def spare(problem: Problem, share: float, *, steps: int = 20) -> Tensor:
    """The least by which ‖θ₀ − θ*‖²/(2ηt) passes C(θ_t) − min C on the way, with η = share/L of either sign."""
    eta, slope = share / problem.beta, grad(problem.loss)
    path = [problem.start]
    for _ in range(steps):
        path.append(path[-1] - eta * slope(path[-1]))
    bound = problem.radius**2 / (2 * eta * counted(steps))
    return (bound - problem.excess(torch.stack(path))[1:]).min()


@erratum("D1.5.4", printed="a rate η smaller than 1/L", right="0 < η ≤ 1/L")
def a_rate_below_one_over_l_may_be_negative() -> Correction:
    """Negative rates are smaller than 1/L too: they climb, above a bound below 0; 1/L will do (Diehl thm. 1.11)."""
    problems = convex_problems().values()
    return Correction(
        printed=at_least(torch.stack([spare(each, share) for each in problems for share in (0.5, -0.1)]), 0.0),
        corrected=at_least(torch.stack([spare(each, share) for each in problems for share in (0.05, 0.5, 1.0)]), 0.0),
    )


@erratum("D1.5.4", printed="C(θ_t) − min C ≤ ‖θ₀ − θ*‖²/(2ηt) for a θ* not named", right="θ* ∈ argmin C, and t ≥ 1")
def the_distance_is_to_a_minimiser() -> Correction:
    """From another point the distance may be 0, which bounds no excess; from a minimiser it does (Diehl thm. 1.11)."""
    problem = next(iter(convex_problems().values()))
    eta, t = 0.5 / problem.beta, counted(40)
    excess = problem.excess(gradient_descent(problem.loss, problem.start, rate=eta, steps=40))[1:]

    def bound(reference: Tensor) -> Tensor:
        return (problem.start - reference).square().sum() / (2 * eta * t)

    return Correction(
        printed=at_most(excess, bound(problem.start)), corrected=at_most(excess, bound(problem.minimiser))
    )


@claim("D1.5.4")
def values_converge_faster_than_places() -> Evidence:
    """On |θ|ᵖ the value falls as t^(−p/(p−2)), within 1/t, the distance as slowly as t^(−1/(p−2)) (Diehl thm. 1.11)."""
    t = [2_000 * 2**k for k in range(6)]
    exponents = {}
    for p in (4, 8, 12):
        eta, theta, seen = 1 / (p * (p - 1)), 1.0, []
        for step in range(1, t[-1] + 1):
            theta -= eta * p * theta ** (p - 1)
            if step in t:
                seen.append(theta)
        places = torch.tensor(seen, dtype=torch.float64)
        exponents[f"distance_for_power_{p}"] = rate(torch.tensor(t), places, -1 / (p - 2), atol=0.01)
        exponents[f"value_for_power_{p}"] = rate(torch.tensor(t), places**p, -p / (p - 2), atol=0.05)
    starts = torch.tensor([[2.0, -1.0], [-0.5, 3.0]], dtype=torch.float64)
    ends = [gradient_descent(lambda w: w.sum().square(), start, rate=0.2, steps=60)[-1] for start in starts]
    return all_of(
        **exponents,
        every_end_is_a_minimiser=close(torch.stack(ends).sum(1), 0.0, atol=1e-9),
        but_the_start_decides_which=at_least((ends[0] - ends[1]).norm(), 1.0),
    )


@erratum("Z12.2", printed="λa + (1 − λ)b ∈ X, λ not named", right="λa + (1 − λ)b ∈ X for λ ∈ [0, 1]")
def a_weight_beyond_one_leaves_the_ball() -> Correction:
    """Over all λ the points fill a line, and only flat sets hold their lines: a disc is none (Zhao sec. 12)."""
    points = cloud(1_200, 2, reach=1.0)
    a, b = points[ball(2.0)(points)][:800].chunk(2)

    def share_inside(weights: Tensor) -> Tensor:
        return ball(2.0)(weights * a + (1 - weights) * b).double().mean()

    weights = torch.rand(400, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    line = torch.tensor([1.0, 2.0], dtype=torch.float64)
    on_line = ((5 * a[:, :1] - 4 * b[:, :1]) * line) @ torch.tensor([-2.0, 1.0], dtype=torch.float64)
    return Correction(
        printed=close(share_inside(6 * weights - 3), 1.0),
        corrected=all_of(
            between_0_and_1=close(share_inside(weights), 1.0),
            a_line_holds_for_every_weight=close(on_line, 0.0, atol=1e-12),
        ),
    )


@erratum(
    "Z12.7",
    printed="the lower point contradicts that x* is not the global minimum",
    right="it contradicts that x* is a local minimum",
)
def the_contradiction_is_with_the_local_minimum() -> Correction:
    """That x* is not global is what the proof supposes, and stays true; that it is local does not (Zhao sec. 12)."""
    star, lower = torch.tensor([1.5, -1.0]).double(), torch.tensor([0.2, 0.1]).double()
    functions = (CONVEX["x²"], CONVEX["log-sum-exp"], CONVEX_WITH_KINKS["|x|"], CONVEX_WITH_KINKS["length"])
    found = [(f, lower_nearby(f, star, lower, reach=reach)) for f in functions for reach in (1e-1, 1e-3, 1e-6)]
    return Correction(
        printed=at_most(torch.stack([f(star) - f(lower) for f in functions]), 0.0),  # x* global after all
        corrected=all_of(
            lower_within_every_reach=at_least(torch.stack([f(star) - near.value for f, near in found]), 1e-8),
            not_global_as_supposed=at_least(torch.stack([f(star) - f(lower) for f in functions]), 0.1),
        ),
    )
