"""Claims about descent, its direction, its noise and its preconditioners (book secs. 3.1-3.3, Diehl sec. 1.5)."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate, runs
from parnassus.optim.gradient_descent import (
    gradient_descent,
    steepest_descent,
    stochastic_gradient_descent,
)
from parnassus.optim.minibatches import in_order
from parnassus.optim.newton import newton_descent, preconditioned_step
from parnassus.optim.sgd import SGD
from parnassus.optim.surfaces import argmin, beale, himmelblau, rosenbrock, saddle, valley
from parnassus.optim.trajectory import trajectory

START = torch.tensor([1.0, -0.7, 0.4], dtype=torch.float64)
CURVATURES = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)


def bowl(theta: Tensor) -> Tensor:
    return (CURVATURES * theta.square()).sum() / 2


def uneven(theta: Tensor) -> Tensor:
    """Convex, smooth and no quadratic."""
    return theta.cosh().sum() + (theta.sum() - 1).square()


@claim("B3.1-1")
def the_rate_may_change_from_step_to_step() -> Evidence:
    """On a quadratic descent with any rates η⁽ᵗ⁾ arrives at Π (1 − η⁽ᵗ⁾β) w⁽⁰⁾; the rates 1/β end it (book eq. 3.2)."""
    steps = 40

    def falling(t: int) -> float:
        return 0.4 / sqrt(1 + t)

    factors = torch.stack([1 - falling(t) * CURVATURES for t in range(steps)]).cumprod(0)
    exact = gradient_descent(bowl, START, rate=lambda t: float(1 / CURVATURES[t]), steps=3)
    return all_of(
        schedule=close(gradient_descent(bowl, START, rate=falling, steps=steps)[1:], factors * START, atol=1e-14),
        a_number_is_a_schedule=close(
            gradient_descent(bowl, START, rate=0.3, steps=9), gradient_descent(bowl, START, rate=lambda _: 0.3, steps=9)
        ),
        one_rate_for_each_curvature=close(exact[-1], 0.0, atol=1e-14),
    )


@claim("B3.1-7", "D1.5.3")
def our_sgd_is_the_sgd_of_torch() -> Evidence:
    """Our SGD, torch's and the plain loop take the same steps; ascent is descent on −f (book eq. 3.2)."""
    ours = trajectory(uneven, START, partial(SGD, lr=0.1), steps=50)
    ascent = trajectory(uneven, START, partial(torch.optim.SGD, lr=1e-3, maximize=True), steps=50)
    return all_of(
        torch_steps=close(ours, trajectory(uneven, START, partial(torch.optim.SGD, lr=0.1), steps=50), atol=1e-12),
        plain_loop=close(ours, gradient_descent(uneven, START, rate=0.1, steps=50), atol=1e-12),
        ascent=close(trajectory(lambda w: -uneven(w), START, partial(SGD, lr=1e-3), steps=50), ascent, atol=1e-12),
        ascent_climbs=at_least(uneven(ascent[-1]) - uneven(START), 0.05),
    )


@erratum("B3.1-7", printed="a last line ...'", right="a last line ...")
def a_stray_quote_ends_the_listing() -> Correction:
    """The listing's last line carries a quotation mark that nothing closes (book sec. 3.1)."""
    steps = "...\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n..."
    weight = nn.Parameter(START.clone())

    def run(listing: str) -> Tensor:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        names = {"optimizer": optimizer, "loss": uneven(weight)}
        exec(compile(listing, "listing", "exec"), names)  # noqa: S102 - the listing stands above
        return weight.detach().clone()

    right = gradient_descent(uneven, START, rate=0.1, steps=1)[-1]
    return Correction(
        printed=runs(lambda: run(f"{steps}'"), unless=SyntaxError), corrected=close(run(steps), right, atol=1e-14)
    )


@claim("Z3.4", "D1.5.5")
def a_batch_of_everything_is_plain_descent() -> Evidence:
    """With |B| = n minibatch SGD is gradient descent; a short batch is divided by its own size (Zhao sec. 3)."""
    source = torch.Generator().manual_seed(0)
    x = torch.randn(10, 3, generator=source, dtype=torch.float64)
    y = torch.randn(10, generator=source, dtype=torch.float64)

    def error(theta: Tensor, example: Tensor, target: Tensor) -> Tensor:
        return (example @ theta - target).square() / 2

    whole = stochastic_gradient_descent(error, START, (x, y), batches=in_order(10, 10, epochs=20), rate=0.1)
    uneven_batches = list(in_order(10, 4))
    dealt = stochastic_gradient_descent(error, START, (x, y), batches=uneven_batches, rate=0.1)
    theta = [START]
    for rows in uneven_batches:  # 4, 4 and 2 rows
        theta.append(theta[-1] - 0.1 / len(rows) * x[rows].mT @ (x[rows] @ theta[-1] - y[rows]))
    full = gradient_descent(lambda w: (x @ w - y).square().mean() / 2, START, rate=0.1, steps=20)
    return all_of(whole=close(whole, full, atol=1e-13), short_batch=close(dealt, torch.stack(theta), atol=1e-13))


@claim("B3.2-1")
def between_one_and_two_over_beta_descent_zigzags() -> Evidence:
    """The steep coordinate changes sign each step exactly for 1/β < η < 2/β, and shrinks there (book fig. 3.1)."""
    cost, beta = valley(20.0), 20.0
    start = torch.tensor(cost.start, dtype=torch.float64)

    def steep(share: float) -> Tensor:
        return gradient_descent(cost, start, rate=share / beta, steps=30)[:, 1]

    slow, zigzag, lost = (steep(share) for share in (0.9, 1.8, 2.1))
    return all_of(
        below_no_turn=at_least(slow[1:] * slow[:-1], 0.0),
        between_always=at_most(zigzag[1:] * zigzag[:-1], 0.0),
        between_shrinks=close(zigzag[1:] / zigzag[:-1], -0.8, rtol=1e-9),
        beyond_grows=at_least(lost[-1].abs(), start[1].abs()),
    )


@claim("B3.3-1")
def the_hessian_as_preconditioner_ends_a_quadratic_in_a_step() -> Evidence:
    """∇f(w⁽ᵗ⁺¹⁾) = (I − AH⁻¹) ∇f(w⁽ᵗ⁾) on a quadratic; H = A gives 0 from everywhere (book eq. 3.33, ex. 3.2)."""
    source = torch.Generator().manual_seed(0)
    basis, _ = torch.linalg.qr(torch.randn(6, 6, generator=source, dtype=torch.float64))
    steep = basis * torch.logspace(0, 6, 6, dtype=torch.float64) @ basis.mT  # condition number 10⁶
    b = torch.randn(6, generator=source, dtype=torch.float64)
    starts = torch.randn(20, 6, generator=source, dtype=torch.float64)
    other = torch.eye(6, dtype=torch.float64) * 1e6

    def after(matrix: Tensor) -> Tensor:
        """The gradients at the points to which one step leads from all starts."""
        ends = torch.stack([preconditioned_step(w, steep @ w + b, matrix) for w in starts])
        slopes: Tensor = ends @ steep + b
        return slopes

    before = starts @ steep + b
    predicted = before @ (torch.eye(6, dtype=torch.float64) - steep @ torch.linalg.inv(other)).mT
    path = newton_descent(lambda w: w @ steep @ w / 2 + b @ w, starts[0], steps=1)
    return all_of(
        hessian=close(after(steep) / before.norm(dim=1, keepdim=True), 0.0, atol=1e-10),
        any_matrix=close(after(other), predicted, rtol=1e-6, atol=1e-6),
        another_does_not_arrive=at_least(after(other).norm(dim=1), 0.1),
        newton=close(path[-1], -torch.linalg.solve(steep, b), atol=1e-8),
    )


@erratum(
    "B3.3-1", printed="∇f(w⁽ᵗ⁺¹⁾) = 0 if and only if H = A", right="for all w⁽ᵗ⁾ at once, with A symmetric invertible"
)
def one_start_does_not_determine_the_preconditioner() -> Correction:
    """From a single point many matrices reach the minimum, and an unsymmetric A is not the Hessian (book ex. 3.2)."""
    a = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    w, elsewhere = (torch.tensor(point, dtype=torch.float64) for point in ([1.0, 2.0], [-1.0, 0.5]))
    step = torch.linalg.solve(a, a @ w)
    across = torch.tensor([-step[1], step[0]], dtype=torch.float64)
    h = a + torch.outer(torch.tensor([5.0, -4.0], dtype=torch.float64), across)  # H · step = A · step
    skew = a + torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)  # the same quadratic form

    def left(matrix: Tensor, start: Tensor) -> Tensor:
        return a @ preconditioned_step(start, a @ start, matrix)

    return Correction(
        printed=close(h, a, atol=0.1),
        corrected=all_of(
            and_yet_it_arrives=close(left(h, w), 0.0, atol=1e-12),
            not_from_elsewhere=at_least(left(h, elsewhere).norm(), 0.1),
            the_hessian_from_both=close(torch.stack([left(a, w), left(a, elsewhere)]), 0.0, atol=1e-12),
            unsymmetric=at_least(left(skew, w).norm(), 0.1),
            its_hessian_is_the_symmetric_part=close(left((skew + skew.mT) / 2, w), 0.0, atol=1e-12),
        ),
    )


@claim("D1.5.1")
def the_minimisers_are_a_set() -> Evidence:
    """The set argmin may hold one point, four, a whole line or none; the gradient vanishes on it (Diehl sec. 1.5)."""
    axis = torch.linspace(-6, 6, 25, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    counts, slopes = [], []
    for surface in (valley(), rosenbrock(), beale(), himmelblau(), saddle()):
        known = torch.tensor(surface.minimisers, dtype=torch.float64)
        found = argmin(surface, torch.cat([grid, known]).unique(dim=0), slack=1e-20)
        counts.append(len(found) - len(known))
        slopes.append(torch.stack([grad(surface)(theta) for theta in known]).abs().max())
    line = argmin(lambda theta: theta[:, 0].square(), grid)
    edges = torch.stack([argmin(lambda x: x[:, 0].exp(), size * axis[:, None])[0, 0] for size in (1.0, 10.0, 100.0)])
    return all_of(
        as_many_as_listed=close(torch.tensor(counts), 0.0),
        no_slope=close(torch.stack(slopes), 0.0, atol=1e-12),
        a_whole_line=close(line, torch.stack([torch.zeros(25, dtype=torch.float64), axis], 1)),
        none_for_the_exponential=close(edges, torch.tensor([-6.0, -60.0, -600.0])),
    )


@claim("D1.5.2")
def the_negative_gradient_is_the_steepest_way_down() -> Evidence:
    """Of 10⁴ unit directions none has a slope below −‖∇C‖, which −∇C/‖∇C‖ has (Diehl sec. 1.5)."""
    theta = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64)
    slope = grad(uneven)(theta)
    h = 1e-5
    nudges = h * torch.eye(3, dtype=torch.float64)
    differences = torch.stack([(uneven(theta + nudge) - uneven(theta - nudge)) / (2 * h) for nudge in nudges])
    directions = torch.randn(10_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    directions = directions / directions.norm(dim=1, keepdim=True)
    down = steepest_descent(slope)
    return all_of(
        autograd_is_right=close(slope, differences, atol=1e-8),
        none_is_steeper=at_least(directions @ slope, -slope.norm()),
        steepest=close(down @ slope, -slope.norm(), rtol=1e-12),
        unit=close(down.norm(), 1.0, rtol=1e-12),
        nearest_of_the_sample=at_least(directions[(directions @ slope).argmin()] @ down, 0.99),
    )


@claim("D1.5.3", "C-06")
def descent_on_a_parabola_swings_and_settles() -> Evidence:
    """On x² with rate 0.9 the path is (−0.8)ᵗ x₀; past the rate 1 it grows (Diehl sec. 1.5)."""
    start = torch.tensor([5.1], dtype=torch.float64)
    path = gradient_descent(lambda x: x.square().sum(), start, rate=0.9, steps=15)[:, 0]
    beyond = gradient_descent(lambda x: x.square().sum(), start, rate=1.05, steps=15)[:, 0]
    small = gradient_descent(lambda x: x.square().sum(), start, rate=1e-3, steps=15)[:, 0]
    t = torch.arange(16, dtype=torch.float64)
    return all_of(
        closed_form=close(path, 5.1 * (-0.8) ** t, atol=1e-12),
        settles=at_most(path[-1].abs(), 0.2),
        beyond=close(beyond, 5.1 * (-1.1) ** t, rtol=1e-12),
        the_rates_of_the_notes_are_slow=at_least(small[-1], 4.9),
    )


@claim("D1.5.5")
def the_noise_of_sgd_leaves_a_floor() -> Evidence:
    """On ½θ² with gradient noise σ, SGD keeps the variance ησ²/((2 − η)|B|), a floor linear in η (Diehl sec. 1.5)."""
    source = torch.Generator().manual_seed(0)
    batch, chains = 4, 20_000
    rates = [0.02, 0.05, 0.1, 0.2]
    found = []
    for eta in rates:
        rest = sqrt(eta / (2 - eta) / batch)
        theta = nn.Parameter(rest * torch.randn(chains, generator=source, dtype=torch.float64))
        optimizer = SGD([theta], lr=eta)
        for _ in range(150):
            noise = torch.randn(chains, batch, generator=source).mean(1)
            theta.grad = theta.detach() + noise
            optimizer.step()
        found.append(theta.detach().var())
    etas = torch.tensor(rates, dtype=torch.float64)
    return all_of(
        variance=close(torch.stack(found), etas / (2 - etas) / batch, rtol=0.05),
        linear_in_the_rate=rate(etas, torch.stack(found), 1.0, atol=0.1),
    )
