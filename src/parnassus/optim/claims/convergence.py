"""Claims of the convergence theorems of descent, and what happens without their assumptions (book sec. 3.1)."""

from dataclasses import replace

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.optim.bounds import (
    convex_bound,
    convex_worst,
    excess_from_slope,
    first_order_decrease,
    flattest_slope_bound,
    least_decrease,
    strongly_convex_bound,
    strongly_convex_worst,
)
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.problems import Problem, largest_coordinate, quadratic, quartic, slowest, smooth_problems

ROUNDING = 1e-13  # what a comparison of values of order one may lose


def descend(problem: Problem, *, steps: int, share: float = 1.0) -> Tensor:
    """The path of descent with η = share/β."""
    return gradient_descent(problem.loss, problem.start, rate=share / problem.beta, steps=steps)


def convex_problems(seed: int = 0) -> dict[str, Problem]:
    return {name: problem for name, problem in smooth_problems(seed).items() if problem.alpha >= 0}


def strong_problems() -> list[Problem]:
    generator = torch.Generator().manual_seed(1)
    spectra = [torch.logspace(-k, 0, 12, dtype=torch.float64) for k in (1, 2)]
    return [*(quadratic(each, generator=generator) for each in spectra), smooth_problems()["ridge logistic"]]


def counted(steps: int) -> Tensor:
    """The numbers of steps t = 1, …, steps."""
    return torch.arange(1, steps + 1, dtype=torch.float64)


@claim("B3.1-2")
def a_small_step_gains_the_rate_times_the_squared_slope() -> Evidence:
    """The gain of a step over η‖∇f‖² tends to 1, with an error linear in η (book eq. 3.5)."""
    problem = smooth_problems()["ridge logistic"]
    rates = torch.logspace(-3, 0, 7, dtype=torch.float64) / problem.beta
    start = problem.start[None]
    gains = torch.stack(
        [
            problem.excess(start) - problem.excess(start - eta * problem.slopes(start))
            for eta in rates  # one step from the same place
        ]
    )[:, 0]
    promised = torch.stack([first_order_decrease(problem, start, rate=float(eta)) for eta in rates])[:, 0]
    return all_of(
        ratio=close(gains[0] / promised[0], 1.0, atol=1e-3), error=rate(rates, 1 - gains / promised, 1.0, atol=0.02)
    )


@claim("B3.1-3")
def a_step_gains_what_the_descent_lemma_grants() -> Evidence:
    """Every step gains η(1 − βη/2)‖∇f‖² or more, on six functions, one not convex, for any η < 2/β (book eq. 3.9)."""
    spare = {}
    for name, problem in smooth_problems().items():
        for share in (0.1, 1.0, 1.9):
            path = descend(problem, steps=40, share=share)
            gain = -problem.excess(path).diff()
            spare[name, share] = (gain - least_decrease(problem, path[:-1], rate=share / problem.beta)).min()
    box = smooth_problems()["egg box"]
    path = descend(box, steps=20)
    granted = box.slopes(path[:-1]).square().sum(-1) / (2 * box.beta)
    return all_of(
        all_steps=at_least(torch.stack(list(spare.values())), -ROUNDING),
        with_one_over_beta=close(least_decrease(box, path[:-1], rate=1 / box.beta), granted, rtol=1e-12),
    )


@claim("B3.1-3")
def without_bounded_curvature_a_step_may_gain_nothing() -> Evidence:
    """Beyond 2/β a quadratic diverges; on |w|, which has no β, steps go to and fro for ever (book sec. 3.1)."""
    bowl = strong_problems()[0]
    below, above = (bowl.excess(descend(bowl, steps=400, share=share))[-1] for share in (1.98, 2.02))
    sharp = largest_coordinate(torch.tensor([0.95], dtype=torch.float64))
    swinging = sharp.excess(gradient_descent(sharp.loss, sharp.start, rate=0.1, steps=100))
    return all_of(
        just_below=at_most(below, 1e-3),
        just_above=at_least(above, 1e3),
        half_a_step_away_for_ever=close(swinging[20:], 0.05, atol=1e-9),
        what_beta_of_ten_would_grant=at_least(
            least_decrease(replace(sharp, beta=10.0), sharp.start[None], rate=0.1), 0.05
        ),
        what_is_gained=close(swinging[20:].diff(), 0.0, atol=1e-9),
    )


@claim("B3.1-3")
def some_slope_on_the_way_is_small() -> Evidence:
    """The least ‖∇f‖² of T places is at most 2β(f(w⁽⁰⁾) − f*)/T, convex or not (book sec. 3.1)."""
    t = counted(200)
    ratios = []
    for problem in smooth_problems().values():
        slopes = problem.slopes(descend(problem, steps=199)).square().sum(-1)
        ratios.append((slopes.cummin(0).values / flattest_slope_bound(problem, t)).max())
    stuck = smooth_problems()["egg box"]
    return all_of(
        every_problem=at_most(torch.stack(ratios), 1.0),
        yet_a_flat_place_may_be_high=at_least(stuck.excess(descend(stuck, steps=400))[-1], 1.0),
    )


@claim("B3.1-4")
def a_small_slope_means_a_small_excess() -> Evidence:
    """f(w) − f* ≤ ‖∇f(w)‖²/(2α) wherever curvature is at least α (book eq. 3.15)."""
    generator = torch.Generator().manual_seed(0)
    ratios = []
    for problem in strong_problems():
        places = problem.minimiser + 3 * torch.randn(200, len(problem.start), generator=generator, dtype=torch.float64)
        ratios.append((problem.excess(places) / excess_from_slope(problem, places)).max())
    return at_most(torch.stack(ratios), 1 + 1e-9)


@claim("B3.1-4")
def strong_convexity_makes_the_excess_shrink_geometrically() -> Evidence:
    """With η = 1/β each step leaves at most 1 − α/β of the excess, so T steps leave its T-th power (book eq. 3.18)."""
    t = counted(150)
    each, all_together = [], []
    for problem in strong_problems():
        excess = problem.excess(descend(problem, steps=150))
        known = excess[1:] > 1e-13
        each.append((excess[1:] / excess[:-1])[known].max() - (1 - problem.alpha / problem.beta))
        all_together.append((excess[1:] / strongly_convex_bound(problem, t))[known].max())
    return all_of(
        each_step=at_most(torch.stack(each), 1e-9), after_t_steps=at_most(torch.stack(all_together), 1 + 1e-9)
    )


@claim("B3.1-4")
def the_true_factor_is_the_square() -> Evidence:
    """(1 − α/β)²ᵀ holds as well, and is attained by a quadratic along its flattest direction (book sec. 3.1)."""
    t = counted(100)
    ratios = []
    for problem in strong_problems():
        excess = problem.excess(descend(problem, steps=100))[1:]
        ratios.append((excess / strongly_convex_worst(problem, t))[excess > 1e-13].max())
    one, alpha = torch.ones(1, dtype=torch.float64), 0.1
    flat = Problem(lambda w: alpha * w.square().sum() / 2, one, 0 * one, alpha=alpha, beta=1.0)
    attained = flat.excess(descend(flat, steps=100))[1:]
    return all_of(
        holds=at_most(torch.stack(ratios), 1 + 1e-9),
        attained=close(attained, strongly_convex_worst(flat, t), rtol=1e-9),
        half_of_the_exponent_is_loose=at_most(attained[-1] / strongly_convex_bound(flat, t)[-1], 1e-4),
    )


@claim("B3.1-4")
def without_strong_convexity_no_factor_holds() -> Evidence:
    """On w⁴ a step in the end leaves all of the excess: 1 − α/β fails for every α > 0 in time (book sec. 3.1)."""
    problem = quartic(torch.ones(1, dtype=torch.float64))
    excess = problem.excess(descend(problem, steps=2_000))
    late = slice(500, 2_000)
    return all_of(
        last_factor=at_least(excess[-1] / excess[-2], 0.998),
        a_power_instead=rate(counted(2_000)[late], excess[1:][late], -2.0, atol=0.05),
        alpha_of_a_hundredth=at_least(
            excess[-1] / strongly_convex_bound(replace(problem, alpha=0.03), torch.tensor([2_000.0]).double())[0], 1.0
        ),
    )


@claim("B3.1-5", "D1.5.4")
def convexity_alone_gives_one_over_t() -> Evidence:
    """f(w⁽ᵀ⁾) − f* ≤ ‖w⁽⁰⁾ − w*‖²/(2ηT) for convex f, η ≤ 1/β and T ≥ 1 (book eq. 3.26, Diehl thm. 1.11)."""
    t = counted(150)
    generator = torch.Generator().manual_seed(0)
    flat = quadratic(torch.logspace(-6, 0, 200, dtype=torch.float64), generator=generator)
    ratios = {}
    for name, problem in {**convex_problems(), "flat": flat}.items():
        for share in (0.5, 0.999, 1.0):
            excess = problem.excess(descend(problem, steps=150, share=share))[1:]
            ratios[name, share] = (excess / convex_bound(problem, t, rate=share / problem.beta)).max()
    return at_most(torch.stack(list(ratios.values())), 1.0)


@claim("B3.1-5", "D1.5.4")
def the_proof_of_the_convex_rate_holds_line_by_line() -> Evidence:
    """Every step: the value falls, the distance does not grow, and pays for the excess (book eqs. 3.19-3.26).

    f(w⁽ᵗ⁺¹⁾) − f* ≤ (‖w⁽ᵗ⁾ − w*‖² − ‖w⁽ᵗ⁺¹⁾ − w*‖²)/(2η); summed over t, the distances telescope (Diehl thm. 1.11).
    """
    lines: dict[str, list[Tensor]] = {"tangent": [], "descent": [], "nearer": [], "paid": [], "last": []}
    for problem in convex_problems().values():
        path = descend(problem, steps=100)
        excess, slopes = problem.excess(path), problem.slopes(path)
        gap = path - problem.minimiser
        distance = gap.square().sum(-1)
        lines["tangent"].append(((slopes * gap).sum(-1) - excess).min())
        lines["descent"].append((-excess.diff() - slopes[:-1].square().sum(-1) / (2 * problem.beta)).min())
        lines["nearer"].append((-distance.diff()).min())
        lines["paid"].append((-distance.diff() * problem.beta / 2 - excess[1:]).min())
        lines["last"].append((excess[1:].mean() - excess[-1]).min())
    return all_of(**{name: at_least(torch.stack(spare), -1e-12) for name, spare in lines.items()})


@claim("B3.1-5", "D1.5.4")
def a_huber_loss_is_the_slowest_convex_function() -> Evidence:
    """The least bound, βR²/(4βηT + 2), is attained by a Huber loss, and all others stay below (Diehl thm. 1.11)."""
    attained, predicted = [], []
    for steps in (1, 3, 10, 40):
        for share in (0.5, 1.0):
            problem = slowest(share * steps, beta=2.0, radius=3.0)
            attained.append(problem.excess(descend(problem, steps=steps, share=share))[-1])
            predicted.append(convex_worst(problem, torch.tensor([float(steps)]).double(), rate=share / 2.0)[0])
    t = counted(200)
    others = [
        (problem.excess(descend(problem, steps=200))[1:] / convex_worst(problem, t, rate=1 / problem.beta)).max()
        for problem in convex_problems().values()
    ]
    return all_of(
        attained=close(torch.stack(attained), torch.stack(predicted), rtol=1e-12),
        others=at_most(torch.stack(others), 1.0),
    )


@claim("D1.5.4")
def steps_up_to_two_over_l_still_converge_on_a_quadratic() -> Evidence:
    """On a quadratic 1.9/L converges though no theorem of this kind covers it; 2.1/L diverges (Diehl sec. 1.5)."""
    bowl = strong_problems()[0]
    near, far = (bowl.excess(descend(bowl, steps=300, share=share)) for share in (1.9, 2.1))
    return all_of(
        converges=at_most(near[-1], 1e-9),
        diverges=at_least(far[-1], 1e9),
        and_breaks_the_bound=at_least(far[300] / convex_bound(bowl, counted(300), rate=1 / bowl.beta)[-1], 1.0),
    )


@claim("D1.5.4")
def without_a_minimum_or_convexity_there_is_no_theorem() -> Evidence:
    """A cost that is not convex may hold descent above its minimum for ever, at a point without slope.

    Where no minimum is attained, as of log(1 + e^−θ), the value still falls but θ goes off (Diehl thm. 1.11).
    """
    stuck = smooth_problems()["egg box"]
    path = descend(stuck, steps=600)
    as_if_convex = convex_bound(replace(stuck, alpha=0.0), counted(600), rate=1 / stuck.beta)
    falling = gradient_descent(
        lambda theta: torch.nn.functional.softplus(-theta).sum(), torch.zeros(1).double(), rate=4.0, steps=600
    )
    return all_of(
        at_rest=at_most(stuck.slopes(path)[-1].abs(), 1e-9),
        above_the_convex_bound=at_least(stuck.excess(path)[-1] / as_if_convex[-1], 10.0),
        value_falls=at_most(torch.nn.functional.softplus(-falling[-1]), 1e-3),
        without_a_limit=at_least(falling[-1] - falling[300], 0.5),
    )
