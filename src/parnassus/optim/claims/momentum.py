"""Claims about momentum in its two notations and Nesterov momentum (book sec. 3.2, Diehl sec. 1.5)."""

from functools import partial

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.optim.claims.gradient_descent import CURVATURES, START, coupled_convex_loss, quadratic_loss
from parnassus.optim.landscapes.trajectory import optimizer_trajectory
from parnassus.optim.optimisers.gradient_descent import gradient_descent, gradient_step
from parnassus.optim.optimisers.momentum import Momentum, heavy_ball, moving_average_momentum
from parnassus.optim.optimisers.nesterov import Nesterov, NesterovMomentum, nesterov_descent


def momentum_as_printed(
    start: Tensor, gammas: list[float], etas: list[float], friction: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Iterates and velocities of φ ← friction · φ + γ ∇f, w ← w − η φ on the quadratic; the printed friction is 1."""
    path, velocities = [start], [torch.zeros_like(start)]
    for gamma, eta in zip(gammas, etas, strict=True):
        velocities.append(friction * velocities[-1] + gamma * grad(quadratic_loss)(path[-1]))
        path.append(path[-1] - eta * velocities[-1])
    return torch.stack(path), torch.stack(velocities)


@erratum("B3.2-2", printed="φ⁽ᵗ⁺¹⁾ = φ⁽ᵗ⁾ + γ∇f", right="φ⁽ᵗ⁺¹⁾ = μφ⁽ᵗ⁾ + ∇f, 0 ≤ μ < 1")
def momentum_needs_a_decay_factor() -> Correction:
    """Without a factor on the old velocity the iterates oscillate on a quadratic indefinitely (book eqs. 3.27-3.28)."""
    steps, eta, mu = 1_000, 0.3, 0.8
    printed, _ = momentum_as_printed(START, [1.0] * steps, [eta] * steps)
    amplitude = torch.stack([quadratic_loss(w) for w in printed[-200:]]).max() / quadratic_loss(START)
    ball = heavy_ball(quadratic_loss, START, learning_rate=eta, momentum=mu, steps=steps)
    # w⁽ᵗ⁺¹⁾, φ⁽ᵗ⁺¹⁾ as a linear map of w⁽ᵗ⁾, φ⁽ᵗ⁾, in each direction
    products = torch.cat([eta * CURVATURES, torch.tensor([0.01, 2.0, 3.99, 4.1], dtype=torch.float64)])  # ηγλ
    maps = torch.stack([torch.tensor([[1 - eta * b, -eta], [b, 1.0]], dtype=torch.float64) for b in products / eta])
    largest = torch.linalg.eigvals(maps).abs().amax(-1)
    short = 60
    varying, _ = momentum_as_printed(START, [mu**-t for t in range(short)], [eta * mu**t for t in range(short)])
    return Correction(
        printed=less_equal(amplitude, 0.01),
        corrected=all_of(
            with_decay_factor=less_equal(quadratic_loss(ball[-1]), 1e-60),
            eigenvalues_of_modulus_one_below_four=close(largest[:-1], 1.0, atol=1e-12),
            growth_above_four=greater_equal(largest[-1], 1.2),
            printed_with_growing_gamma=close(varying, ball[: short + 1], atol=1e-10),
        ),
    )


@erratum("B3.2-7", printed="torch's momentum is 1/γ of the printed update", right="it is the factor μ on the velocity")
def torch_momentum_is_the_velocity_factor() -> Correction:
    """The `momentum` of torch multiplies the velocity; no constant γ gives its steps (book eqs. 3.27-3.28)."""
    steps, eta, mu = 30, 1e-1, 0.8
    torch_path = optimizer_trajectory(quadratic_loss, START, partial(torch.optim.SGD, lr=eta, momentum=mu), steps=steps)
    printed, _ = momentum_as_printed(START, [1 / mu] * steps, [eta] * steps)
    with_factor, _ = momentum_as_printed(START, [1.0] * steps, [eta] * steps, friction=mu)
    return Correction(
        printed=close(printed, torch_path, atol=0.1), corrected=close(with_factor, torch_path, atol=1e-12)
    )


@claim("B3.2-2", "B3.2-7")
def momentum_matches_torch() -> Evidence:
    """Momentum and Nesterov momentum match torch, with v = g in the first step (book sec. 3.2)."""
    momentum = optimizer_trajectory(
        coupled_convex_loss, START, partial(torch.optim.SGD, lr=0.1, momentum=0.8), steps=50
    )
    nesterov = optimizer_trajectory(
        coupled_convex_loss, START, partial(torch.optim.SGD, lr=0.1, momentum=0.8, nesterov=True), steps=50
    )
    gradient = grad(coupled_convex_loss)(START)
    return all_of(
        momentum=close(
            optimizer_trajectory(coupled_convex_loss, START, partial(Momentum, lr=0.1, momentum=0.8), steps=50),
            momentum,
            atol=1e-12,
        ),
        nesterov=close(
            optimizer_trajectory(coupled_convex_loss, START, partial(NesterovMomentum, lr=0.1, momentum=0.8), steps=50),
            nesterov,
            atol=1e-12,
        ),
        plain_loop=close(
            heavy_ball(coupled_convex_loss, START, learning_rate=0.1, momentum=0.8, steps=50), momentum, atol=1e-12
        ),
        first_step=close(momentum[1], START - 0.1 * gradient, atol=1e-14),
        first_nesterov_step=close(nesterov[1], START - 0.1 * 1.8 * gradient, atol=1e-14),
    )


@claim("B3.2-3", "B3.2-7")
def torch_nesterov_uses_a_constant_coefficient() -> Evidence:
    """Torch's Nesterov momentum is the printed iteration with μ in place of t/(t + 3) (book eqs. 3.29-3.30)."""
    eta, mu, steps = 0.1, 0.8, 50
    w, phi = [START], [START]
    for _ in range(steps):
        phi.append(gradient_step(w[-1], grad(coupled_convex_loss)(w[-1]), eta))
        w.append(phi[-1] + mu * (phi[-1] - phi[-2]))
    torch_path = optimizer_trajectory(
        coupled_convex_loss, START, partial(torch.optim.SGD, lr=eta, momentum=mu, nesterov=True), steps=steps
    )
    path = nesterov_descent(coupled_convex_loss, START, learning_rate=eta, steps=steps)
    return all_of(
        constant=close(torch_path, torch.stack(w), atol=1e-12),
        fraction=close(
            optimizer_trajectory(coupled_convex_loss, START, partial(Nesterov, lr=eta), steps=steps), path.w, atol=1e-12
        ),
        the_two_differ=greater_equal((torch_path - path.w).abs().max(), 0.01),
        first_step_is_gradient_descent=close(path.w[1], START - eta * grad(coupled_convex_loss)(START)),
        other_damping=close(
            optimizer_trajectory(coupled_convex_loss, START, partial(Nesterov, lr=eta, damping=9.0), steps=steps),
            nesterov_descent(coupled_convex_loss, START, learning_rate=eta, damping=9.0, steps=steps).w,
            atol=1e-12,
        ),
    )


@claim("D1.5.6")
def heavy_ball_and_moving_average_momentum_are_equivalent() -> Evidence:
    """Heavy ball with m = β and rate η (1 − β) equals the moving average with rate η (Diehl sec. 1.5)."""
    beta, eta = 0.9, 0.5
    ball = heavy_ball(coupled_convex_loss, START, learning_rate=eta * (1 - beta), momentum=beta, steps=80)
    # v_{t+1} = m v_t − η∇C, θ_{t+1} = θ_t + v_{t+1}, with the signs of the notes
    theta, velocity = [START], torch.zeros_like(START)
    for _ in range(80):
        velocity = beta * velocity - eta * (1 - beta) * grad(coupled_convex_loss)(theta[-1])
        theta.append(theta[-1] + velocity)
    return all_of(
        average=close(
            moving_average_momentum(coupled_convex_loss, START, learning_rate=eta, momentum=beta, steps=80),
            ball,
            atol=1e-12,
        ),
        signs_of_the_notes=close(torch.stack(theta), ball, atol=1e-12),
        no_momentum=close(
            moving_average_momentum(coupled_convex_loss, START, learning_rate=0.2, momentum=0.0, steps=20),
            gradient_descent(coupled_convex_loss, START, learning_rate=0.2, steps=20),
            atol=1e-14,
        ),
    )


@erratum("D1.5.6", printed="θ_{t+1} = θ_t + v_t, m ∈ (0, 1]", right="θ_{t+1} = θ_t + v_{t+1}, m ∈ [0, 1)")
def momentum_step_uses_the_updated_velocity() -> Correction:
    """Moving by the old velocity delays the gradient and diverges where gradient descent converges (Diehl sec. 1.5)."""
    eta, steps = 1.5, 60
    by_old_velocity, by_new_velocity = [1.0], [1.0]
    old_velocity = new_velocity = 0.0
    for _ in range(steps):  # C = θ²/2 and m = 0
        by_old_velocity.append(by_old_velocity[-1] + old_velocity)
        old_velocity = -eta * by_old_velocity[-2]
        new_velocity = -eta * by_new_velocity[-1]
        by_new_velocity.append(by_new_velocity[-1] + new_velocity)
    undamped = torch.tensor([1.0, 0.0], dtype=torch.float64)  # θ and v with m = 1
    amplitudes = []
    for _ in range(2_000):
        velocity = undamped[1] - 0.1 * undamped[0]
        undamped = torch.stack([undamped[0] + velocity, velocity])
        amplitudes.append(undamped[0].abs())
    start, optimiser = torch.tensor(1.0).double(), partial(Momentum, lr=0.3, momentum=0.6)
    by_optimiser = optimizer_trajectory(lambda theta: theta.square() / 2, start, optimiser, steps=20)
    by_recursion = [torch.tensor([1.0, 0.0], dtype=torch.float64)]  # θ and v
    for _ in range(20):
        velocity = 0.6 * by_recursion[-1][1] - 0.3 * by_recursion[-1][0]
        by_recursion.append(torch.stack([by_recursion[-1][0] + velocity, velocity]))
    return Correction(
        printed=less_equal(abs(by_old_velocity[-1]), 1.0),
        corrected=all_of(
            optimiser=close(by_optimiser, torch.stack(by_recursion)[:, 0], atol=1e-14),
            new_velocity=less_equal(abs(by_new_velocity[-1]), 1e-15),
            gradient_descent_without_momentum=close(by_new_velocity[-1], (1 - eta) ** steps, rtol=1e-9),
            old_velocity_diverges=greater_equal(abs(by_old_velocity[-1]), 1e5),
            m_equal_to_one_does_not_converge=greater_equal(torch.stack(amplitudes[-100:]).max(), 0.9),
        ),
    )
