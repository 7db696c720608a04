"""Claims about gradient descent, SGD noise and preconditioning (book secs. 3.1-3.3, Diehl sec. 1.5)."""

from functools import partial
from math import sqrt

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate, runs
from parnassus.optim.landscapes.surfaces import argmin_set, beale, himmelblau, quadratic_valley, rosenbrock, saddle
from parnassus.optim.landscapes.trajectory import optimizer_trajectory
from parnassus.optim.optimisers.gradient_descent import (
    gradient_descent,
    steepest_descent,
    stochastic_gradient_descent,
)
from parnassus.optim.optimisers.newton import newton_descent, preconditioned_step
from parnassus.optim.optimisers.sgd import SGD
from parnassus.optim.training.minibatches import sequential_batches
from parnassus.probability import standard_normal

START = torch.tensor([1.0, -0.7, 0.4], dtype=torch.float64)
CURVATURES = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
"""Curvatures of the quadratic ℓ(θ) = ½ Σ β_i θ_i²; the largest is β = 4, so that 2/β = ½."""


def quadratic_loss(theta: Tensor) -> Tensor:
    return (CURVATURES * theta.square()).sum() / 2


def coupled_convex_loss(theta: Tensor) -> Tensor:
    """Convex, smooth and not quadratic."""
    return theta.cosh().sum() + (theta.sum() - 1).square()


@claim("B3.1-1")
def learning_rate_may_depend_on_the_step() -> Evidence:
    """On a quadratic the iterates are Π (1 − η⁽ᵗ⁾β) w⁽⁰⁾; the rates 1/β reach the minimum (book eq. 3.2)."""
    steps = 40

    def decreasing_rate(t: int) -> float:
        return 0.4 / sqrt(1 + t)

    factors = torch.stack([1 - decreasing_rate(t) * CURVATURES for t in range(steps)]).cumprod(0)
    exact = gradient_descent(quadratic_loss, START, learning_rate=lambda t: float(1 / CURVATURES[t]), steps=3)
    return all_of(
        schedule=close(
            gradient_descent(quadratic_loss, START, learning_rate=decreasing_rate, steps=steps)[1:],
            factors * START,
            atol=1e-14,
        ),
        constant_schedule=close(
            gradient_descent(quadratic_loss, START, learning_rate=0.3, steps=9),
            gradient_descent(quadratic_loss, START, learning_rate=lambda _: 0.3, steps=9),
        ),
        one_rate_for_each_curvature=close(exact[-1], 0.0, atol=1e-14),
    )


@claim("B3.1-7", "D1.5.3")
def sgd_matches_torch() -> Evidence:
    """SGD matches torch and `gradient_descent`; ascent is descent on −f (book eq. 3.2)."""
    iterates = optimizer_trajectory(coupled_convex_loss, START, partial(SGD, lr=0.1), steps=50)
    ascent = optimizer_trajectory(
        coupled_convex_loss, START, partial(torch.optim.SGD, lr=1e-3, maximize=True), steps=50
    )
    return all_of(
        matches_torch=close(
            iterates,
            optimizer_trajectory(coupled_convex_loss, START, partial(torch.optim.SGD, lr=0.1), steps=50),
            atol=1e-12,
        ),
        matches_gradient_descent=close(
            iterates, gradient_descent(coupled_convex_loss, START, learning_rate=0.1, steps=50), atol=1e-12
        ),
        ascent=close(
            optimizer_trajectory(lambda w: -coupled_convex_loss(w), START, partial(SGD, lr=1e-3), steps=50),
            ascent,
            atol=1e-12,
        ),
        ascent_increases=greater_equal(coupled_convex_loss(ascent[-1]) - coupled_convex_loss(START), 0.05),
    )


@erratum("B3.1-7", printed="a last line ...'", right="a last line ...")
def sgd_listing_is_a_syntax_error() -> Correction:
    """The listing's last line has an unmatched quotation mark (book sec. 3.1)."""
    steps = "...\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n..."
    weight = nn.Parameter(START.clone())

    def run(listing: str) -> Tensor:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        names = {"optimizer": optimizer, "loss": coupled_convex_loss(weight)}
        exec(compile(listing, "listing", "exec"), names)  # noqa: S102 - the listing is above
        return weight.detach().clone()

    right = gradient_descent(coupled_convex_loss, START, learning_rate=0.1, steps=1)[-1]
    return Correction(
        printed=runs(lambda: run(f"{steps}'"), unless=SyntaxError), corrected=close(run(steps), right, atol=1e-14)
    )


@claim("Z3.4", "D1.5.5")
def full_batch_sgd_is_gradient_descent() -> Evidence:
    """With |B| = n mini-batch SGD is gradient descent; a short batch is averaged over its own size (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(10, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(10, generator=generator, dtype=torch.float64)

    def error(theta: Tensor, example: Tensor, target: Tensor) -> Tensor:
        return (example @ theta - target).square() / 2

    full_batch = stochastic_gradient_descent(
        error, START, (x, y), batches=sequential_batches(10, 10, epochs=20), learning_rate=0.1
    )
    batches = list(sequential_batches(10, 4))
    mini_batch = stochastic_gradient_descent(error, START, (x, y), batches=batches, learning_rate=0.1)
    theta = [START]
    for rows in batches:  # 4, 4 and 2 rows
        theta.append(theta[-1] - 0.1 / len(rows) * x[rows].mT @ (x[rows] @ theta[-1] - y[rows]))
    full = gradient_descent(lambda w: (x @ w - y).square().mean() / 2, START, learning_rate=0.1, steps=20)
    return all_of(
        full_batch=close(full_batch, full, atol=1e-13), short_batch=close(mini_batch, torch.stack(theta), atol=1e-13)
    )


@claim("B3.2-1")
def gradient_descent_zigzags_between_one_and_two_over_beta() -> Evidence:
    """The coordinate of curvature β changes sign each step and decreases for 1/β < η < 2/β (book fig. 3.1)."""
    cost, beta = quadratic_valley(20.0), 20.0
    start = torch.tensor(cost.start, dtype=torch.float64)

    def coordinate(fraction: float) -> Tensor:
        return gradient_descent(cost, start, learning_rate=fraction / beta, steps=30)[:, 1]

    of_optimiser = optimizer_trajectory(cost, start, partial(torch.optim.SGD, lr=1.8 / beta), steps=30)
    monotone, zigzag, divergent = (coordinate(fraction) for fraction in (0.9, 1.8, 2.1))
    return all_of(
        monotone_below_one_over_beta=greater_equal(monotone[1:] * monotone[:-1], 0.0),
        sign_changes=less_equal(zigzag[1:] * zigzag[:-1], 0.0),
        contraction_factor=close(zigzag[1:] / zigzag[:-1], -0.8, rtol=1e-9),
        path_of_an_optimiser=close(of_optimiser[:, 1], zigzag, atol=1e-12),
        divergent_above_two_over_beta=greater_equal(divergent[-1].abs(), start[1].abs()),
    )


@claim("B3.3-1")
def newton_step_minimises_a_quadratic() -> Evidence:
    """∇f(w⁽ᵗ⁺¹⁾) = (I − AH⁻¹) ∇f(w⁽ᵗ⁾) on a quadratic, 0 for H = A from every start (book eq. 3.33, ex. 3.2)."""
    generator = torch.Generator().manual_seed(0)
    basis, _ = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))
    steep = basis * torch.logspace(0, 6, 6, dtype=torch.float64) @ basis.mT  # condition number 10⁶
    b = torch.randn(6, generator=generator, dtype=torch.float64)
    starts = torch.randn(20, 6, generator=generator, dtype=torch.float64)
    other = torch.eye(6, dtype=torch.float64) * 1e6

    def gradients_after_step(matrix: Tensor) -> Tensor:
        """The gradients after one step from every start."""
        ends = torch.stack([preconditioned_step(w, steep @ w + b, matrix) for w in starts])
        gradients: Tensor = ends @ steep + b
        return gradients

    gradients_before = starts @ steep + b
    predicted = gradients_before @ (torch.eye(6, dtype=torch.float64) - steep @ torch.linalg.inv(other)).mT
    path = newton_descent(lambda w: w @ steep @ w / 2 + b @ w, starts[0], steps=1)
    return all_of(
        hessian=close(gradients_after_step(steep) / gradients_before.norm(dim=1, keepdim=True), 0.0, atol=1e-10),
        any_matrix=close(gradients_after_step(other), predicted, rtol=1e-6, atol=1e-6),
        other_matrix_does_not_converge=greater_equal(gradients_after_step(other).norm(dim=1), 0.1),
        newton=close(path[-1], -torch.linalg.solve(steep, b), atol=1e-8),
    )


@erratum(
    "B3.3-1", printed="∇f(w⁽ᵗ⁺¹⁾) = 0 if and only if H = A", right="for all w⁽ᵗ⁾ at once, with A symmetric invertible"
)
def one_start_does_not_determine_the_preconditioner() -> Correction:
    """From one start many matrices reach the minimum; an unsymmetric A is not the Hessian (book ex. 3.2)."""
    a = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    w, other = (torch.tensor(point, dtype=torch.float64) for point in ([1.0, 2.0], [-1.0, 0.5]))
    step = torch.linalg.solve(a, a @ w)
    across = torch.tensor([-step[1], step[0]], dtype=torch.float64)
    h = a + torch.outer(torch.tensor([5.0, -4.0], dtype=torch.float64), across)  # H · step = A · step
    skew = a + torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)  # the same quadratic form

    def gradient_after_step(matrix: Tensor, start: Tensor) -> Tensor:
        return a @ preconditioned_step(start, a @ start, matrix)

    return Correction(
        printed=close(h, a, atol=0.1),
        corrected=all_of(
            converges_from_one_start=close(gradient_after_step(h, w), 0.0, atol=1e-12),
            not_from_another_start=greater_equal(gradient_after_step(h, other).norm(), 0.1),
            hessian_converges_from_both=close(
                torch.stack([gradient_after_step(a, w), gradient_after_step(a, other)]), 0.0, atol=1e-12
            ),
            unsymmetric_does_not_converge=greater_equal(gradient_after_step(skew, w).norm(), 0.1),
            symmetric_part_converges=close(gradient_after_step((skew + skew.mT) / 2, w), 0.0, atol=1e-12),
        ),
    )


@claim("D1.5.1")
def argmin_is_a_set() -> Evidence:
    """The set argmin may contain one point, four points, a line or no point; ∇C vanishes on it (Diehl sec. 1.5)."""
    axis = torch.linspace(-6, 6, 25, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    counts, gradients = [], []
    for surface in (quadratic_valley(), rosenbrock(), beale(), himmelblau(), saddle()):
        minimisers = torch.tensor(surface.minimisers, dtype=torch.float64)
        argmin = argmin_set(surface, torch.cat([grid, minimisers]).unique(dim=0), tolerance=1e-20)
        counts.append(len(argmin) - len(minimisers))
        gradients.append(torch.stack([grad(surface)(theta) for theta in minimisers]).abs().max())
    line = argmin_set(lambda theta: theta[:, 0].square(), grid)
    edges = torch.stack(
        [argmin_set(lambda x: x[:, 0].exp(), size * axis[:, None])[0, 0] for size in (1.0, 10.0, 100.0)]
    )
    return all_of(
        number_of_minimisers=close(torch.tensor(counts), 0.0),
        gradients_vanish=close(torch.stack(gradients), 0.0, atol=1e-12),
        line_of_minimisers=close(line, torch.stack([torch.zeros(25, dtype=torch.float64), axis], 1)),
        no_minimiser_of_the_exponential=close(edges, torch.tensor([-6.0, -60.0, -600.0])),
    )


@claim("D1.5.2")
def negative_gradient_is_the_steepest_descent_direction() -> Evidence:
    """The smallest directional derivative is −‖∇C‖, in direction −∇C/‖∇C‖ (Diehl sec. 1.5)."""
    theta = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64)
    gradient = grad(coupled_convex_loss)(theta)
    steps = 1e-6 * torch.eye(3, dtype=torch.float64)
    differences = torch.stack([coupled_convex_loss(theta + h) - coupled_convex_loss(theta - h) for h in steps]) / 2e-6
    directions = standard_normal(10_000, 3)
    directions = directions / directions.norm(dim=1, keepdim=True)
    steepest = steepest_descent(gradient)
    return all_of(
        finite_differences=close(gradient, differences, atol=1e-8),
        none_is_steeper=greater_equal(directions @ gradient, -gradient.norm()),
        steepest=close(steepest @ gradient, -gradient.norm(), rtol=1e-12),
        unit=close(steepest.norm(), 1.0, rtol=1e-12),
        nearest_of_the_sample=greater_equal(directions[(directions @ gradient).argmin()] @ steepest, 0.99),
    )


@claim("D1.5.3", "C-06")
def gradient_descent_on_a_parabola_oscillates_and_converges() -> Evidence:
    """On x² with learning rate 0.9 the iterates are (−0.8)ᵗ x₀; above 1 they diverge (Diehl sec. 1.5)."""
    start = torch.tensor([5.1], dtype=torch.float64)
    path = gradient_descent(lambda x: x.square().sum(), start, learning_rate=0.9, steps=15)[:, 0]
    divergent = gradient_descent(lambda x: x.square().sum(), start, learning_rate=1.05, steps=15)[:, 0]
    slow = gradient_descent(lambda x: x.square().sum(), start, learning_rate=1e-3, steps=15)[:, 0]
    t = torch.arange(16, dtype=torch.float64)
    return all_of(
        closed_form=close(path, 5.1 * (-0.8) ** t, atol=1e-12),
        converges=less_equal(path[-1].abs(), 0.2),
        diverges_above_1=close(divergent, 5.1 * (-1.1) ** t, rtol=1e-12),
        rate_of_the_notes_is_slow=greater_equal(slow[-1], 4.9),
    )


@claim("D1.5.5")
def sgd_at_a_fixed_rate_has_a_noise_floor() -> Evidence:
    """On ½θ² with gradient noise σ, the stationary variance of SGD is ησ²/((2 − η)|B|) (Diehl sec. 1.5)."""
    generator = torch.Generator().manual_seed(0)
    batch, chains = 4, 20_000
    rates = [0.02, 0.05, 0.1, 0.2]
    variances = []
    for eta in rates:
        stationary_std = sqrt(eta / (2 - eta) / batch)
        theta = nn.Parameter(stationary_std * torch.randn(chains, generator=generator, dtype=torch.float64))
        optimizer = SGD([theta], lr=eta)
        for _ in range(150):
            noise = torch.randn(chains, batch, generator=generator).mean(1)
            theta.grad = theta.detach() + noise
            optimizer.step()
        variances.append(theta.detach().var())
    etas = torch.tensor(rates, dtype=torch.float64)
    return all_of(
        variance=close(torch.stack(variances), etas / (2 - etas) / batch, rtol=0.05),
        linear_in_the_rate=rate(etas, torch.stack(variances), 1.0, atol=0.1),
    )
