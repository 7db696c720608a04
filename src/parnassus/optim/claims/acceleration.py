"""Claims about Nesterov's method, its rate and its differential equation (book sec. 3.2)."""

from functools import partial
from math import sqrt

import torch
from scipy.special import gamma, jv
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.optim.bounds import accelerated_bound, accelerated_worst
from parnassus.optim.flows import bowl_solution, gradient_flow, nesterov_flow
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.nesterov import nesterov_descent
from parnassus.optim.problems import quadratic, slowest, smooth_problems

ONE = torch.ones(1, dtype=torch.float64)


def bowl(w: Tensor) -> Tensor:
    """½ w², the f of which the equation has a closed solution."""
    return w.square().sum() / 2


def scaled_bowl(curvature: float, w: Tensor) -> Tensor:
    return curvature * bowl(w)


def distance_to_equation(step: float, *, time_step: float, until: float = 20.0, damping: float = 3.0) -> Tensor:
    """The greatest distance of iterates with γ = step on ½w² from the equation's solution at s = k · time_step."""
    steps = round(until / sqrt(step))
    phi = nesterov_descent(bowl, ONE, rate=step, steps=steps, damping=damping).phi[:, 0]
    s = time_step * torch.arange(steps + 1, dtype=torch.float64)
    return (phi - bowl_solution(s, damping=damping)).abs().max()


@claim("B3.2-3")
def nesterov_falls_as_one_over_t_squared() -> Evidence:
    """f(φ⁽ᵏ⁾) − f* ≤ 2‖w⁽⁰⁾ − w*‖²/(γ(k + 1)²) on every convex problem; the same holds of w (book sec. 3.2)."""
    t = torch.arange(1, 201, dtype=torch.float64)
    phi, w = [], []
    for problem in smooth_problems().values():
        if problem.alpha < 0:
            continue
        for share in (0.3, 1.0):
            paths = nesterov_descent(problem.loss, problem.start, rate=share / problem.beta, steps=200)
            bound = accelerated_bound(problem, t, rate=share / problem.beta)
            phi.append((problem.excess(paths.phi)[1:] / bound).max())
            w.append((problem.excess(paths.w)[1:] / bound).max())
    return all_of(phi=at_most(torch.stack(phi), 1.0), w=at_most(torch.stack(w), 1.0))


@claim("B3.2-3")
def the_worst_case_of_nesterov_is_a_huber_loss() -> Evidence:
    """On its slowest function T steps leave 2βR²/((T + 2)(T + 3)), which tends to the bound (book sec. 3.2)."""
    left, predicted, bound = [], [], []
    for steps in (1, 5, 20, 100):
        problem = slowest((steps**2 + 5 * steps + 2) / 8)
        phi = nesterov_descent(problem.loss, problem.start, rate=1.0, steps=steps).phi
        left.append(problem.excess(phi)[-1])
        t = torch.tensor([float(steps)], dtype=torch.float64)
        predicted.append(accelerated_worst(problem, t)[0])
        bound.append(accelerated_bound(problem, t, rate=1.0)[0])
    return all_of(
        attained=close(torch.stack(left), torch.stack(predicted), rtol=1e-11),
        near_the_bound=at_least(left[-1] / bound[-1], 0.97),
        never_above=at_most(torch.stack(left), torch.stack(bound)),
    )


@claim("B3.2-3")
def nesterov_wins_on_flat_problems_and_may_lose_on_round_ones() -> Evidence:
    """Far below descent on 200 curvatures down to 10⁻⁶, with ripples; behind it on a round bowl (book sec. 3.2)."""
    generator = torch.Generator().manual_seed(0)
    flat = quadratic(torch.logspace(-6, 0, 200, dtype=torch.float64), generator=generator)
    plain = flat.excess(gradient_descent(flat.loss, flat.start, rate=1 / flat.beta, steps=1_000))
    ahead = flat.excess(nesterov_descent(flat.loss, flat.start, rate=1 / flat.beta, steps=1_000).phi)
    bowls = quadratic(torch.logspace(-1, 0, 10, dtype=torch.float64), generator=generator)
    round_plain = bowls.excess(gradient_descent(bowls.loss, bowls.start, rate=1 / bowls.beta, steps=200))
    round_ahead = bowls.excess(nesterov_descent(bowls.loss, bowls.start, rate=1 / bowls.beta, steps=200).phi)
    return all_of(
        flat_problem=at_most(ahead[-1] / plain[-1], 0.05),
        ripples=at_least(round_ahead.diff().max(), 1e-6),
        descent_never_rises=at_most(round_plain.diff(), 1e-15),
        round_bowl=at_least(round_ahead[-1] / round_plain[-1], 10.0),
    )


@claim("B3.2-3")
def nesterov_does_not_bear_a_rate_that_descent_bears() -> Evidence:
    """With γ = 1.5/β descent still converges on a bowl; the accelerated path leaves: its border is 4/(3β).

    γ ≤ 1/β is the theorem's assumption (book sec. 3.2).
    """
    plain = gradient_descent(bowl, ONE, rate=1.5, steps=200)
    ahead, inside = (nesterov_descent(bowl, ONE, rate=step, steps=400).w for step in (1.36, 1.3))
    return all_of(
        descent=at_most(plain[-1].abs(), 1e-12),
        nesterov=at_least(ahead[-1].abs(), 1e3),
        just_inside=at_most(inside[-1].abs(), 1e-3),
    )


@claim("B3.2-4")
def descent_with_tiny_steps_is_the_gradient_flow() -> Evidence:
    """(w⁽ᵗ⁺¹⁾ − w⁽ᵗ⁾)/η = −∇f: at time tη descent is within O(η) of e^(−As) w⁽⁰⁾, the flow (book eq. 3.31)."""
    generator = torch.Generator().manual_seed(0)
    problem = quadratic(torch.logspace(-1, 0, 4, dtype=torch.float64), generator=generator)
    (curvature,) = torch.autograd.functional.hessian(problem.loss, (problem.start,))[0]

    def exact(steps: int) -> Tensor:
        times = torch.linspace(0, 4, steps + 1, dtype=torch.float64)
        decay = torch.matrix_exp(-times[:, None, None] * curvature)
        return problem.minimiser + decay @ (problem.start - problem.minimiser)

    sizes = [10, 20, 40, 80, 160]
    errors = [
        (gradient_descent(problem.loss, problem.start, rate=4 / steps, steps=steps) - exact(steps)).abs().max()
        for steps in sizes
    ]
    flow = gradient_flow(problem.loss, problem.start, time=4.0, steps=40)
    return all_of(
        error=rate(4 / torch.tensor(sizes), torch.stack(errors), 1.0, atol=0.1),
        halves=close(errors[-1] / errors[-2], 0.5, atol=0.02),
        flow_by_runge_kutta=close(flow, exact(40), atol=1e-6),
        value_falls=at_most(problem.excess(flow).diff(), 0.0),
    )


@claim("B3.2-5")
def the_equation_of_nesterov_has_a_bessel_solution() -> Evidence:
    """w″ + (3/s)w′ = −λw has the solution w₀ 2J₁(√λ s)/(√λ s): formula, quadrature and solver agree (book eq. 3.32)."""
    s = torch.linspace(0, 20, 401, dtype=torch.float64)
    parts = {}
    for curvature in (0.5, 2.0):
        x = curvature**0.5 * s[1:]
        bessel = torch.as_tensor(2 * jv(1, x.numpy()) / x.numpy())
        solved = nesterov_flow(partial(scaled_bowl, curvature), ONE, time=20.0, steps=400)[:, 0]
        parts[f"formula for λ = {curvature:g}"] = close(bowl_solution(s[1:], curvature=curvature), bessel, atol=1e-13)
        parts[f"solver for λ = {curvature:g}"] = close(solved[1:], bessel, atol=1e-5)
    return all_of(**parts)


@erratum("B3.2-5", printed="iterate k is at time kγ", right="iterate k is at time k√γ")
def the_time_step_of_the_equation_is_a_root() -> Correction:
    """For both equations the text sets the time step to the rate; Nesterov's needs √γ (book eq. 3.32)."""
    steps = torch.tensor([1e-2, 1e-3, 1e-4], dtype=torch.float64)
    as_printed = torch.stack([distance_to_equation(float(each), time_step=float(each)) for each in steps[:2]])
    right = torch.stack([distance_to_equation(float(each), time_step=sqrt(each)) for each in steps])
    return Correction(
        printed=at_most(as_printed, 2 * steps[:2].sqrt()),
        corrected=all_of(
            distance=at_most(right, steps.sqrt()),
            exponent=rate(steps, right, 0.5, atol=0.03),
            factor=close(right / steps.sqrt(), 0.75, atol=0.02),
        ),
    )


@claim("B3.2-6")
def other_dampings_have_bessel_solutions_too() -> Evidence:
    """With r for 3 the solution is Γ((r+1)/2)(2/s)^((r−1)/2) J_((r−1)/2)(s); t/(t + r) follows it (book sec. 3.2)."""
    s = torch.linspace(0.05, 50, 800, dtype=torch.float64)
    parts = {}
    for r in (1.0, 2.0, 3.0, 9.0):
        nu = (r - 1) / 2
        bessel = torch.as_tensor(gamma(nu + 1) * (2 / s.numpy()) ** nu * jv(nu, s.numpy()))
        parts[f"formula for r = {r:g}"] = close(bowl_solution(s, damping=r), bessel, atol=1e-13)
        distance = distance_to_equation(1e-3, time_step=sqrt(1e-3), damping=r)
        parts[f"iteration for r = {r:g}"] = at_most(distance, (1 + r) * sqrt(1e-3))
    return all_of(**parts)


@claim("B3.2-6")
def the_swing_dies_out_like_a_power_of_the_damping() -> Evidence:
    """On ½w² the peaks of f fall like s^(−r) (book sec. 3.2)."""
    s = torch.linspace(20, 160, 28_001, dtype=torch.float64)
    parts = {}
    for r in (1.0, 2.0, 3.0, 6.0):
        f = bowl_solution(s, damping=r).square() / 2
        peak = (f[1:-1] > f[:-2]) & (f[1:-1] > f[2:])
        parts[f"r = {r:g}"] = rate(s[1:-1][peak], f[1:-1][peak], -r, atol=0.15)
    return all_of(**parts)


@erratum("B3.2-6", printed="r > 3 converges faster", right="in the long run; at first it is slower")
def more_damping_is_slower_at_first() -> Correction:
    """A larger r wins late and loses early: f = 0.01 is first reached later the larger r is (book sec. 3.2)."""
    s = torch.linspace(0, 50, 5_001, dtype=torch.float64)
    f = {r: bowl_solution(s, damping=r).square() / 2 for r in (1.0, 3.0, 9.0, 30.0)}
    first = {r: s[values < 0.01][0] for r, values in f.items()}
    late = {r: values[s >= 40].max() for r, values in f.items()}
    return Correction(
        printed=at_most(torch.stack([first[9.0], first[30.0]]), first[3.0]),
        corrected=all_of(
            three_reaches_a_hundredth_at=close(first[3.0], 3.3, atol=0.1),
            nine_at=close(first[9.0], 5.7, atol=0.1),
            thirty_later_than=at_least(first[30.0], 8.0),
            late_one=close(late[1.0], 7.9e-3, rtol=0.05),
            late_nine_below_three=at_most(late[9.0] / late[3.0], 1e-4),
        ),
    )
