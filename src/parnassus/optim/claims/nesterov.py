"""Claims about Nesterov's method: convergence rate and differential equation (book sec. 3.2)."""

from functools import partial
from math import sqrt

import torch
from scipy.special import gamma, jv
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.optim.continuous_time.gradient_flow import gradient_flow, nesterov_flow, quadratic_nesterov_flow
from parnassus.optim.convexity.convergence_bounds import accelerated_bound, accelerated_worst_case
from parnassus.optim.landscapes.problems import huber_worst_case, quadratic, smooth_problems
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.optim.optimisers.nesterov import nesterov_descent

ONE = torch.ones(1, dtype=torch.float64)


def quadratic_loss(w: Tensor) -> Tensor:
    """½ w², for which Nesterov's equation has a closed solution."""
    return w.square().sum() / 2


def scaled_quadratic_loss(curvature: float, w: Tensor) -> Tensor:
    return curvature * quadratic_loss(w)


def distance_to_ode(gamma: float, *, time_step: float, max_time: float = 20.0, damping: float = 3.0) -> Tensor:
    """Maximum distance of the iterates with learning rate γ on ½w² from the solution at times s = k · time_step."""
    steps = round(max_time / sqrt(gamma))
    phi = nesterov_descent(quadratic_loss, ONE, learning_rate=gamma, steps=steps, damping=damping).phi[:, 0]
    s = time_step * torch.arange(steps + 1, dtype=torch.float64)
    return (phi - quadratic_nesterov_flow(s, damping=damping)).abs().max()


@claim("B3.2-3")
def nesterov_converges_as_one_over_t_squared() -> Evidence:
    """f(φ⁽ᵏ⁾) − f* ≤ 2‖w⁽⁰⁾ − w*‖²/(γ(k + 1)²) on every convex problem; the same holds for w (book sec. 3.2)."""
    t = torch.arange(1, 201, dtype=torch.float64)
    phi, w = [], []
    for problem in smooth_problems().values():
        if problem.alpha < 0:
            continue
        for fraction in (0.3, 1.0):
            eta = fraction / problem.beta
            paths = nesterov_descent(problem.loss, problem.start, learning_rate=eta, steps=200)
            bound = accelerated_bound(problem, t, learning_rate=eta)
            phi.append((problem.excess(paths.phi)[1:] / bound).max())
            w.append((problem.excess(paths.w)[1:] / bound).max())
    return all_of(phi=less_equal(torch.stack(phi), 1.0), w=less_equal(torch.stack(w), 1.0))


@claim("B3.2-3")
def huber_loss_is_the_worst_case_of_nesterov() -> Evidence:
    """The worst-case suboptimality after T steps is 2βR²/((T + 2)(T + 3)), asymptotically the bound (book sec. 3.2)."""
    excess, predicted, bound = [], [], []
    for steps in (1, 5, 20, 100):
        problem = huber_worst_case((steps**2 + 5 * steps + 2) / 8)
        phi = nesterov_descent(problem.loss, problem.start, learning_rate=1.0, steps=steps).phi
        excess.append(problem.excess(phi)[-1])
        t = torch.tensor([float(steps)], dtype=torch.float64)
        predicted.append(accelerated_worst_case(problem, t)[0])
        bound.append(accelerated_bound(problem, t, learning_rate=1.0)[0])
    return all_of(
        attained=close(torch.stack(excess), torch.stack(predicted), rtol=1e-11),
        near_the_bound=greater_equal(excess[-1] / bound[-1], 0.97),
        below_the_bound=less_equal(torch.stack(excess), torch.stack(bound)),
    )


@claim("B3.2-3")
def nesterov_is_slower_on_well_conditioned_quadratics() -> Evidence:
    """Nesterov's method is faster on curvatures down to 10⁻⁶, slower on curvatures ≥ 0.1 (book sec. 3.2)."""
    generator = torch.Generator().manual_seed(0)
    ill = quadratic(torch.logspace(-6, 0, 200, dtype=torch.float64), generator=generator)
    plain_ill = ill.excess(gradient_descent(ill.loss, ill.start, learning_rate=1 / ill.beta, steps=1_000))
    nesterov_ill = ill.excess(nesterov_descent(ill.loss, ill.start, learning_rate=1 / ill.beta, steps=1_000).phi)
    well = quadratic(torch.logspace(-1, 0, 10, dtype=torch.float64), generator=generator)
    plain_well = well.excess(gradient_descent(well.loss, well.start, learning_rate=1 / well.beta, steps=200))
    nesterov_well = well.excess(nesterov_descent(well.loss, well.start, learning_rate=1 / well.beta, steps=200).phi)
    return all_of(
        ill_conditioned=less_equal(nesterov_ill[-1] / plain_ill[-1], 0.05),
        nesterov_oscillates=greater_equal(nesterov_well.diff().max(), 1e-6),
        gradient_descent_is_monotone=less_equal(plain_well.diff(), 1e-15),
        well_conditioned=greater_equal(nesterov_well[-1] / plain_well[-1], 10.0),
    )


@claim("B3.2-3")
def nesterov_diverges_where_gradient_descent_converges() -> Evidence:
    """At γ = 1.5/β gradient descent converges on a quadratic; Nesterov's method diverges above 4/(3β).

    The theorem assumes γ ≤ 1/β (book sec. 3.2).
    """
    plain = gradient_descent(quadratic_loss, ONE, learning_rate=1.5, steps=200)
    above, below = (nesterov_descent(quadratic_loss, ONE, learning_rate=step, steps=400).w for step in (1.36, 1.3))
    return all_of(
        gradient_descent=less_equal(plain[-1].abs(), 1e-12),
        nesterov_above_the_limit=greater_equal(above[-1].abs(), 1e3),
        nesterov_below_the_limit=less_equal(below[-1].abs(), 1e-3),
    )


@claim("B3.2-4")
def gradient_descent_converges_to_the_gradient_flow() -> Evidence:
    """(w⁽ᵗ⁺¹⁾ − w⁽ᵗ⁾)/η = −∇f: at s = tη gradient descent is within O(η) of the flow e^(−As) w⁽⁰⁾ (book eq. 3.31)."""
    generator = torch.Generator().manual_seed(0)
    problem = quadratic(torch.logspace(-1, 0, 4, dtype=torch.float64), generator=generator)
    (curvature,) = torch.autograd.functional.hessian(problem.loss, (problem.start,))[0]

    def exact(steps: int) -> Tensor:
        times = torch.linspace(0, 4, steps + 1, dtype=torch.float64)
        decay = torch.matrix_exp(-times[:, None, None] * curvature)
        return problem.minimiser + decay @ (problem.start - problem.minimiser)

    sizes = [10, 20, 40, 80, 160]
    errors = [
        (gradient_descent(problem.loss, problem.start, learning_rate=4 / steps, steps=steps) - exact(steps)).abs().max()
        for steps in sizes
    ]
    flow = gradient_flow(problem.loss, problem.start, time=4.0, steps=40)
    return all_of(
        error=rate(4 / torch.tensor(sizes), torch.stack(errors), 1.0, atol=0.1),
        ratio_at_half_the_rate=close(errors[-1] / errors[-2], 0.5, atol=0.02),
        flow_by_runge_kutta=close(flow, exact(40), atol=1e-6),
        value_decreases=less_equal(problem.excess(flow).diff(), 0.0),
    )


@claim("B3.2-5")
def nesterov_ode_has_a_bessel_solution() -> Evidence:
    """w″ + (3/s)w′ = −λw is solved by w₀ 2J₁(√λ s)/(√λ s): formula, quadrature and solver agree (book eq. 3.32)."""
    s = torch.linspace(0, 20, 401, dtype=torch.float64)
    parts = {}
    for curvature in (0.5, 2.0):
        x = curvature**0.5 * s[1:]
        bessel = torch.as_tensor(2 * jv(1, x.numpy()) / x.numpy())
        solved = nesterov_flow(partial(scaled_quadratic_loss, curvature), ONE, time=20.0, steps=400)[:, 0]
        parts[f"formula for λ = {curvature:g}"] = close(
            quadratic_nesterov_flow(s[1:], curvature=curvature), bessel, atol=1e-13
        )
        parts[f"solver for λ = {curvature:g}"] = close(solved[1:], bessel, atol=1e-5)
    return all_of(**parts)


@erratum("B3.2-5", printed="iterate k is at time kγ", right="iterate k is at time k√γ")
def nesterov_ode_time_step_is_the_root_of_the_rate() -> Correction:
    """For both equations the text sets the time step to the learning rate; Nesterov's is √γ (book eq. 3.32)."""
    gammas = torch.tensor([1e-2, 1e-3, 1e-4], dtype=torch.float64)
    as_printed = torch.stack([distance_to_ode(float(each), time_step=float(each)) for each in gammas[:2]])
    corrected = torch.stack([distance_to_ode(float(each), time_step=sqrt(each)) for each in gammas])
    return Correction(
        printed=less_equal(as_printed, 2 * gammas[:2].sqrt()),
        corrected=all_of(
            distance=less_equal(corrected, gammas.sqrt()),
            exponent=rate(gammas, corrected, 0.5, atol=0.03),
            factor=close(corrected / gammas.sqrt(), 0.75, atol=0.02),
        ),
    )


@claim("B3.2-6")
def nesterov_ode_with_other_damping_has_bessel_solutions() -> Evidence:
    """For damping r the solution is Γ((r+1)/2)(2/s)^((r−1)/2) J_((r−1)/2)(s); t/(t + r) follows it (book sec. 3.2)."""
    s = torch.linspace(0.05, 50, 800, dtype=torch.float64)
    parts = {}
    for r in (1.0, 2.0, 3.0, 9.0):
        nu = (r - 1) / 2
        bessel = torch.as_tensor(gamma(nu + 1) * (2 / s.numpy()) ** nu * jv(nu, s.numpy()))
        parts[f"formula for r = {r:g}"] = close(quadratic_nesterov_flow(s, damping=r), bessel, atol=1e-13)
        distance = distance_to_ode(1e-3, time_step=sqrt(1e-3), damping=r)
        parts[f"iteration for r = {r:g}"] = less_equal(distance, (1 + r) * sqrt(1e-3))
    return all_of(**parts)


@claim("B3.2-6")
def oscillations_decay_as_a_power_of_time() -> Evidence:
    """On ½w² the local maxima of f decay as s^(−r) (book sec. 3.2)."""
    s = torch.linspace(20, 160, 28_001, dtype=torch.float64)
    parts = {}
    for r in (1.0, 2.0, 3.0, 6.0):
        f = quadratic_nesterov_flow(s, damping=r).square() / 2
        peak = (f[1:-1] > f[:-2]) & (f[1:-1] > f[2:])
        parts[f"r = {r:g}"] = rate(s[1:-1][peak], f[1:-1][peak], -r, atol=0.15)
    return all_of(**parts)


@erratum("B3.2-6", printed="r > 3 converges faster", right="it is faster asymptotically, but initially slower")
def larger_damping_is_slower_initially() -> Correction:
    """A larger r is faster only asymptotically: f = 0.01 is first reached later for larger r (book sec. 3.2)."""
    s = torch.linspace(0, 50, 5_001, dtype=torch.float64)
    f = {r: quadratic_nesterov_flow(s, damping=r).square() / 2 for r in (1.0, 3.0, 9.0, 30.0)}
    hitting_time = {r: s[values < 0.01][0] for r, values in f.items()}
    late_maximum = {r: values[s >= 40].max() for r, values in f.items()}
    return Correction(
        printed=less_equal(torch.stack([hitting_time[9.0], hitting_time[30.0]]), hitting_time[3.0]),
        corrected=all_of(
            hitting_time_r_3=close(hitting_time[3.0], 3.3, atol=0.1),
            hitting_time_r_9=close(hitting_time[9.0], 5.7, atol=0.1),
            hitting_time_r_30=greater_equal(hitting_time[30.0], 8.0),
            late_maximum_r_1=close(late_maximum[1.0], 7.9e-3, rtol=0.05),
            late_maximum_r_9_over_r_3=less_equal(late_maximum[9.0] / late_maximum[3.0], 1e-4),
        ),
    )
