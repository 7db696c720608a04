"""Claims about AdaGrad, RMSProp and Adam (book sec. 3.3, Diehl sec. 1.5)."""

from collections.abc import Callable
from functools import partial

import torch
from scipy.linalg import sqrtm
from torch import Tensor, nn
from torch.func import grad
from torch.optim import Optimizer

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate, runs
from parnassus.optim.adagrad import AdaGrad, FullAdaGrad
from parnassus.optim.adam import Adam, AdamW
from parnassus.optim.rmsprop import RMSProp
from parnassus.optim.sgd import SGD
from parnassus.optim.trajectory import trajectory

START = torch.tensor([1.0, -0.7, 0.4], dtype=torch.float64)
SCALES = torch.tensor([1e-4, 3.0, -200.0], dtype=torch.float64)
"""Slopes of a linear function whose coordinates could not differ more."""


def uneven(theta: Tensor) -> Tensor:
    """Convex, with curvatures that differ, and coupled coordinates."""
    return theta.cosh().sum() + 10 * (theta @ torch.tensor([1.0, 2.0, -1.0], dtype=theta.dtype) - 1).square()


def rotation() -> Tensor:
    source = torch.Generator().manual_seed(0)
    basis: Tensor = torch.linalg.qr(torch.randn(3, 3, generator=source, dtype=torch.float64)).Q
    return basis


@claim("B3.3-2")
def the_whole_matrix_turns_with_the_coordinates() -> Evidence:
    """Rotating the problem rotates the iterates of full AdaGrad, not those of the diagonal (book eqs. 3.34-3.35)."""
    turn = rotation()

    def turned(theta: Tensor) -> Tensor:
        return uneven(turn.mT @ theta)

    full, diagonal = (
        [trajectory(loss, start, make, steps=40) for loss, start in ((uneven, START), (turned, turn @ START))]
        for make in (partial(FullAdaGrad, lr=0.3), partial(AdaGrad, lr=0.3))
    )
    # eq. 3.35 by itself at step 5, when three gradients have made the matrix invertible
    slopes = torch.stack([grad(uneven)(theta) for theta in full[0][:6]])
    root = torch.from_numpy(sqrtm((slopes.mT @ slopes).numpy()).real)
    by_hand = full[0][5] - 0.3 * torch.linalg.solve(root, slopes[5])
    return all_of(
        full=close(full[1], full[0] @ turn.mT, atol=1e-6),
        diagonal_does_not=at_least((diagonal[1] - diagonal[0] @ turn.mT).abs().max(), 0.1),
        formula=close(full[0][6], by_hand, atol=1e-8),
        first_step_has_length_eta=close((full[0][1] - START).norm(), 0.3, rtol=1e-9),
    )


@claim("B3.3-3", "B3.3-7")
def adagrad_does_not_feel_the_scale() -> Evidence:
    """AdaGrad takes torch's steps, the first of size η everywhere; c·f has the path of f (book eqs. 3.36-3.39)."""
    make = partial(AdaGrad, lr=0.3)
    path = trajectory(uneven, START, make, steps=50)
    theirs = trajectory(uneven, START, partial(torch.optim.Adagrad, lr=0.3), steps=50)
    first = trajectory(lambda theta: SCALES @ theta, START, make, steps=1).diff(dim=0)[0]
    squares, w = torch.zeros(3, 3, dtype=torch.float64), START  # eqs. 3.36-3.37 with their diagonal matrices
    for _ in range(50):
        slope = grad(uneven)(w)
        squares = squares + torch.diag(slope * slope)
        w = w - 0.3 * torch.linalg.inv(squares.sqrt()) @ slope
    return all_of(
        torch_steps=close(path, theirs, atol=1e-12),
        first_step=close(first, -0.3 * SCALES.sign(), rtol=1e-5),
        scale=close(trajectory(lambda theta: 1e4 * uneven(theta), START, make, steps=50), path, atol=1e-7),
        matrices_and_vectors=close(w, path[-1], atol=1e-7),
    )


@erratum("B3.3-4", printed="R⁽ᵗ⁾ averages G⁽ᵗ⁾ = Σ_{i≤t} ∇f⊙∇f", right="R⁽ᵗ⁾ averages ∇f⊙∇f alone")
def averaging_the_sum_does_not_forget() -> Correction:
    """Under constant gradients RMSProp keeps steps of η; the printed one decays like AdaGrad (book eqs. 3.40-3.42)."""
    steps, eta = 1_000, 1.0

    def last_step(make: Callable[..., Optimizer]) -> Tensor:
        return -trajectory(torch.sum, torch.zeros(1, dtype=torch.float64), make, steps=steps).diff(dim=0)[-1, 0]

    average = total = 0.0
    sizes = []
    for _ in range(steps):
        total += 1.0
        average = 0.9 * average + 0.1 * total
        sizes.append(eta / average**0.5)
    t = torch.arange(1, steps + 1, dtype=torch.float64)
    return Correction(
        printed=close(sizes[-1], eta, rtol=0.1),
        corrected=all_of(
            standard=close(last_step(partial(RMSProp, lr=eta, alpha=0.9)), eta, rtol=1e-6),
            adagrad=close(last_step(partial(AdaGrad, lr=eta)), steps**-0.5, rtol=1e-6),
            printed_is_no_better=close(sizes[-1], steps**-0.5, rtol=0.01),
            printed_decays=rate(t[99:], torch.tensor(sizes[99:], dtype=torch.float64), -0.5, atol=0.02),
        ),
    )


@claim("B3.3-4", "B3.3-5", "B3.3-7")
def rmsprop_pointwise_is_rmsprop_with_matrices() -> Evidence:
    """Diagonal matrices and vectors give the same iterates, and torch the same again (book eqs. 3.41-3.42, ex. 3.3)."""
    alpha, eta, eps = 0.9, 1e-2, 1e-8
    matrix, w, path = torch.zeros(3, 3, dtype=torch.float64), START, [START]
    for _ in range(60):
        slope = grad(uneven)(w)
        matrix = alpha * matrix + (1 - alpha) * torch.diag(slope * slope)
        w = w - eta * torch.linalg.inv(matrix.sqrt() + eps * torch.eye(3, dtype=torch.float64)) @ slope
        path.append(w)
    ours = trajectory(uneven, START, partial(RMSProp, lr=eta, alpha=alpha), steps=60)
    theirs = trajectory(uneven, START, partial(torch.optim.RMSprop, lr=eta, alpha=alpha), steps=60)
    return all_of(matrices=close(ours, torch.stack(path), atol=1e-10), torch_steps=close(ours, theirs, atol=1e-12))


@claim("B3.3-6", "B3.3-7", "D1.5.7")
def adam_is_that_of_torch() -> Evidence:
    """Adam takes torch's steps; by the formulas as they stand, from t = 1 with √ŝ + ε (book eqs. 3.43-3.48)."""
    eta, beta_1, beta_2, eps = 1e-2, 0.9, 0.99, 1e-8
    m = s = torch.zeros_like(START)
    path = [START]
    for t in range(1, 61):
        slope = grad(uneven)(path[-1])
        m = beta_1 * m + (1 - beta_1) * slope
        s = beta_2 * s + (1 - beta_2) * slope * slope
        path.append(path[-1] - eta * (m / (1 - beta_1**t)) / ((s / (1 - beta_2**t)).sqrt() + eps))
    ours = trajectory(uneven, START, partial(Adam, lr=eta, betas=(beta_1, beta_2)), steps=60)
    theirs = trajectory(uneven, START, partial(torch.optim.Adam, lr=eta, betas=(beta_1, beta_2)), steps=60)
    return all_of(formulas=close(ours, torch.stack(path), atol=1e-12), torch_steps=close(ours, theirs, atol=1e-12))


@claim("B3.3-6", "D1.5.7")
def the_first_step_of_adam_is_eta_everywhere() -> Evidence:
    """The first step is −η g/(|g| + ε), whatever the scale; with β₁ = β₂ = 0 all are signs (Diehl sec. 1.5)."""
    first = trajectory(lambda theta: SCALES @ theta, START, partial(Adam, lr=1e-3), steps=1).diff(dim=0)[0]
    signs = trajectory(uneven, START, partial(Adam, lr=1e-3, betas=(0.0, 0.0), eps=0.0), steps=20)
    slopes = torch.stack([grad(uneven)(theta) for theta in signs[:-1]])
    return all_of(
        formula=close(first, -1e-3 * SCALES / (SCALES.abs() + 1e-8), rtol=1e-9),
        size=close(first.abs(), 1e-3, rtol=1e-3),
        sign_descent=close(signs.diff(dim=0), -1e-3 * slopes.sign(), atol=1e-15),
    )


@claim("B3.3-6", "D1.5.7")
def the_bias_of_the_start_is_taken_out() -> Evidence:
    """For gradients of constant law E m̂ = E g and E ŝ = E g² at every t; m is too small by 1 − β₁ᵗ (book eq. 3.46)."""
    chains, steps = 40_000, 30
    source = torch.Generator().manual_seed(0)
    theta = nn.Parameter(torch.zeros(chains, dtype=torch.float64))
    optimizer = Adam([theta], betas=(0.9, 0.99))
    means, squares = [], []
    for _ in range(steps):
        theta.grad = 2 + torch.randn(chains, generator=source, dtype=torch.float64)
        optimizer.step()
        means.append(optimizer.state[theta]["mean"].mean())
        squares.append(optimizer.state[theta]["squares"].mean())
    t = torch.arange(1, steps + 1)
    mean, square = torch.stack(means), torch.stack(squares)
    return all_of(
        mean=close(mean / (1 - 0.9**t), 2.0, rtol=0.01),
        square=close(square / (1 - 0.99**t), 5.0, rtol=0.01),
        uncorrected=close(mean, 2 * (1 - 0.9**t), rtol=0.01),
        uncorrected_square_at_first=at_most(square[0], 0.06),
    )


@erratum("B3.3-6", "D1.5.7", printed="1 − βᵗ with t from 0", right="t = 1, 2, …, m = s = 0 before, √ŝ + ε")
def adam_counts_from_one() -> Correction:
    """At t = 0 the correction divides by 1 − β⁰ = 0: nothing is left of the parameters (book eqs. 3.46-3.48)."""
    g = torch.tensor([0.5, -3.0, 0.0], dtype=torch.float64)
    m, s = 0.1 * g, 0.01 * g * g
    as_printed = (m / (1 - 0.9**0)) / (s / (1 - 0.99**0)).sqrt()
    from_one = (m / (1 - 0.9**1)) / (s / (1 - 0.99**1)).sqrt()
    step = trajectory(lambda theta: g @ theta, START, partial(Adam, lr=1.0), steps=1).diff(dim=0)[0]
    return Correction(
        printed=close(as_printed, g.sign(), atol=1e-6),
        corrected=all_of(
            from_one=close(from_one[:2], g[:2].sign(), rtol=1e-12),
            without_eps_a_zero_slope_is_lost=close(from_one[2].isnan().double(), 1.0),
            ours=close(step, -g.sign(), atol=1e-6),
        ),
    )


@claim("B3.3-6")
def adam_rescales_an_l2_penalty_and_adamw_does_not() -> Evidence:
    """Where gradients are large Adam's L2 hardly shrinks a weight; AdamW shrinks all by 1 − ηλ (Diehl sec. 1.5)."""
    steps, eta, decay = 200, 1e-2, 0.1
    sizes = torch.tensor([0.01, 1.0, 100.0], dtype=torch.float64)
    slopes = [sizes * (-1) ** t for t in range(steps)]  # to and fro, so that only the decay moves the weights

    def shrunk(make: Callable[..., Optimizer]) -> Tensor:
        """What the decay takes from weights of 1, beside the same walk without it."""
        ends = []
        for weight_decay in (0.0, decay):
            theta = nn.Parameter(torch.ones(3, dtype=torch.float64))
            optimizer = make([theta], weight_decay=weight_decay)
            for slope in slopes:
                theta.grad = slope.clone()
                optimizer.step()
            ends.append(theta.detach())
        return ends[0] - ends[1]

    coupled, decoupled = shrunk(partial(Adam, lr=eta)), shrunk(partial(AdamW, lr=eta))
    return all_of(
        coupled_depends_on_the_gradients=at_least(coupled[0] / coupled[2], 20.0),
        decoupled_does_not=close(decoupled, 1 - (1 - eta * decay) ** steps, rtol=0.1),
        with_sgd_both_are_one=close(shrunk(partial(SGD, lr=1e-3)), 1 - (1 - 1e-3 * decay) ** steps, rtol=0.1),
    )


@erratum("B3.3-7", printed="a line that ends in =", right="the call on the same line")
def the_listing_does_not_parse() -> Correction:
    """An assignment cannot break after its equals sign; joined, the settings are those of ours (book sec. 3.3)."""
    model = nn.Linear(2, 1)
    names = {"torch": torch, "model": model}
    call = "torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9)"

    def run(listing: str) -> dict[str, object]:
        exec(compile(listing, "listing", "exec"), found := dict(names))  # noqa: S102 - the listing stands here
        return found

    joined = run(f"opt = {call}")["opt"]
    assert isinstance(joined, torch.optim.RMSprop)
    ours = RMSProp(model.parameters(), lr=1e-3, alpha=0.9)
    settings = ("lr", "alpha", "eps", "weight_decay")
    return Correction(
        printed=runs(lambda: run(f"opt =\n    {call}"), unless=SyntaxError),
        corrected=close(
            torch.tensor([ours.defaults[name] for name in settings]),
            torch.tensor([joined.defaults[name] for name in settings]),
        ),
    )
