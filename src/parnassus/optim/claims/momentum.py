"""Claims about momentum in its notations, and about Nesterov's acceleration (book sec. 3.2, Diehl sec. 1.5)."""

from functools import partial

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.optim.claims.optimisers import CURVATURES, START, bowl, uneven
from parnassus.optim.gradient_descent import gradient_descent, gradient_step
from parnassus.optim.momentum import Momentum, averaged_momentum, heavy_ball
from parnassus.optim.nesterov import Nesterov, NesterovMomentum, nesterov_descent
from parnassus.optim.trajectory import trajectory


def printed_momentum(
    start: Tensor, gammas: list[float], etas: list[float], friction: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The path and velocities of φ ← friction · φ + γ ∇f, w ← w − η φ on the bowl; as printed the friction is 1."""
    path, velocities = [start], [torch.zeros_like(start)]
    for gamma, eta in zip(gammas, etas, strict=True):
        velocities.append(friction * velocities[-1] + gamma * grad(bowl)(path[-1]))
        path.append(path[-1] - eta * velocities[-1])
    return torch.stack(path), torch.stack(velocities)


@erratum("B3.2-2", printed="φ⁽ᵗ⁺¹⁾ = φ⁽ᵗ⁾ + γ∇f", right="φ⁽ᵗ⁺¹⁾ = μφ⁽ᵗ⁾ + ∇f, 0 ≤ μ < 1")
def momentum_needs_friction() -> Correction:
    """Without a factor on the old velocity the iteration swings on a quadratic for ever (book eqs. 3.27-3.28)."""
    steps, eta, mu = 1_000, 0.3, 0.8
    printed, _ = printed_momentum(START, [1.0] * steps, [eta] * steps)
    swing = torch.stack([bowl(w) for w in printed[-200:]]).max() / bowl(START)
    ball = heavy_ball(bowl, START, rate=eta, momentum=mu, steps=steps)
    # w⁽ᵗ⁺¹⁾, φ⁽ᵗ⁺¹⁾ as a linear map of w⁽ᵗ⁾, φ⁽ᵗ⁾, in each direction
    products = torch.cat([eta * CURVATURES, torch.tensor([0.01, 2.0, 3.99, 4.1], dtype=torch.float64)])  # ηγλ
    maps = torch.stack([torch.tensor([[1 - eta * b, -eta], [b, 1.0]], dtype=torch.float64) for b in products / eta])
    largest = torch.linalg.eigvals(maps).abs().amax(-1)
    few = 60
    varying, _ = printed_momentum(START, [mu**-t for t in range(few)], [eta * mu**t for t in range(few)])
    return Correction(
        printed=at_most(swing, 0.01),
        corrected=all_of(
            with_friction=at_most(bowl(ball[-1]), 1e-60),
            eigenvalues_of_modulus_one_below_four=close(largest[:-1], 1.0, atol=1e-12),
            growth_beyond=at_least(largest[-1], 1.2),
            printed_with_growing_gamma=close(varying, ball[: few + 1], atol=1e-10),
        ),
    )


@erratum("B3.2-7", printed="torch's momentum is 1/γ of the printed update", right="it is the factor μ on the velocity")
def the_momentum_of_torch_is_no_inverse_of_gamma() -> Correction:
    """The `momentum` of torch multiplies the velocity; no constant γ gives its steps (book eqs. 3.27-3.28)."""
    steps, eta, mu = 30, 1e-1, 0.8
    theirs = trajectory(bowl, START, partial(torch.optim.SGD, lr=eta, momentum=mu), steps=steps)
    printed, _ = printed_momentum(START, [1 / mu] * steps, [eta] * steps)
    right, _ = printed_momentum(START, [1.0] * steps, [eta] * steps, friction=mu)
    return Correction(printed=close(printed, theirs, atol=0.1), corrected=close(right, theirs, atol=1e-12))


@claim("B3.2-2", "B3.2-7")
def our_momentum_is_that_of_torch() -> Evidence:
    """Our momentum and Nesterov momentum take torch's steps, the first with v = g (book sec. 3.2)."""
    plain = trajectory(uneven, START, partial(torch.optim.SGD, lr=0.1, momentum=0.8), steps=50)
    ahead = trajectory(uneven, START, partial(torch.optim.SGD, lr=0.1, momentum=0.8, nesterov=True), steps=50)
    slope = grad(uneven)(START)
    return all_of(
        momentum=close(trajectory(uneven, START, partial(Momentum, lr=0.1, momentum=0.8), steps=50), plain, atol=1e-12),
        nesterov=close(
            trajectory(uneven, START, partial(NesterovMomentum, lr=0.1, momentum=0.8), steps=50), ahead, atol=1e-12
        ),
        plain_loop=close(heavy_ball(uneven, START, rate=0.1, momentum=0.8, steps=50), plain, atol=1e-12),
        first_step=close(plain[1], START - 0.1 * slope, atol=1e-14),
        first_step_ahead=close(ahead[1], START - 0.1 * 1.8 * slope, atol=1e-14),
    )


@claim("B3.2-3", "B3.2-7")
def torch_has_a_constant_in_place_of_nesterovs_fraction() -> Evidence:
    """The Nesterov of torch is the printed iteration with μ for t/(t + 3); ours has t/(t + 3) (book eqs. 3.29-3.30)."""
    eta, mu, steps = 0.1, 0.8, 50
    w, phi = [START], [START]
    for _ in range(steps):
        phi.append(gradient_step(w[-1], grad(uneven)(w[-1]), eta))
        w.append(phi[-1] + mu * (phi[-1] - phi[-2]))
    theirs = trajectory(uneven, START, partial(torch.optim.SGD, lr=eta, momentum=mu, nesterov=True), steps=steps)
    path = nesterov_descent(uneven, START, rate=eta, steps=steps)
    return all_of(
        constant=close(theirs, torch.stack(w), atol=1e-12),
        fraction=close(trajectory(uneven, START, partial(Nesterov, lr=eta), steps=steps), path.w, atol=1e-12),
        the_two_differ=at_least((theirs - path.w).abs().max(), 0.01),
        first_step_is_plain=close(path.w[1], START - eta * grad(uneven)(START)),
        other_damping=close(
            trajectory(uneven, START, partial(Nesterov, lr=eta, damping=9.0), steps=steps),
            nesterov_descent(uneven, START, rate=eta, damping=9.0, steps=steps).w,
            atol=1e-12,
        ),
    )


@claim("D1.5.6")
def both_notations_of_momentum_walk_one_path() -> Evidence:
    """Heavy ball with m = β and the rate η (1 − β) is the moving average with η; m = 0 is descent (Diehl sec. 1.5)."""
    beta, eta = 0.9, 0.5
    ball = heavy_ball(uneven, START, rate=eta * (1 - beta), momentum=beta, steps=80)
    # v_{t+1} = m v_t − η∇C, θ_{t+1} = θ_t + v_{t+1}, in the signs of the notes
    theta, velocity = [START], torch.zeros_like(START)
    for _ in range(80):
        velocity = beta * velocity - eta * (1 - beta) * grad(uneven)(theta[-1])
        theta.append(theta[-1] + velocity)
    return all_of(
        average=close(averaged_momentum(uneven, START, rate=eta, momentum=beta, steps=80), ball, atol=1e-12),
        signs_of_the_notes=close(torch.stack(theta), ball, atol=1e-12),
        no_momentum=close(
            averaged_momentum(uneven, START, rate=0.2, momentum=0.0, steps=20),
            gradient_descent(uneven, START, rate=0.2, steps=20),
            atol=1e-14,
        ),
    )


@erratum("D1.5.6", printed="θ_{t+1} = θ_t + v_t, m ∈ (0, 1]", right="θ_{t+1} = θ_t + v_{t+1}, m ∈ [0, 1)")
def momentum_moves_by_the_new_velocity() -> Correction:
    """Moving by the old velocity is descent a gradient late: it diverges where descent arrives (Diehl sec. 1.5)."""
    eta, steps = 1.5, 60
    late, fresh = [1.0], [1.0]
    old = new = 0.0
    for _ in range(steps):  # C = θ²/2 and m = 0
        late.append(late[-1] + old)
        old = -eta * late[-2]
        new = -eta * fresh[-1]
        fresh.append(fresh[-1] + new)
    undamped = torch.tensor([1.0, 0.0], dtype=torch.float64)  # θ and v with m = 1
    swings = []
    for _ in range(2_000):
        velocity = undamped[1] - 0.1 * undamped[0]
        undamped = torch.stack([undamped[0] + velocity, velocity])
        swings.append(undamped[0].abs())
    return Correction(
        printed=at_most(abs(late[-1]), 1.0),
        corrected=all_of(
            new_velocity=at_most(abs(fresh[-1]), 1e-15),
            it_is_gradient_descent=close(fresh[-1], (1 - eta) ** steps, rtol=1e-9),
            late_by_one_grows=at_least(abs(late[-1]), 1e5),
            with_m_one_it_never_settles=at_least(torch.stack(swings[-100:]).max(), 0.9),
        ),
    )
