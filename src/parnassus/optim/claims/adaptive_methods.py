"""Claims about AdaGrad, RMSProp and Adam (book sec. 3.3, Diehl sec. 1.5)."""

from collections.abc import Callable
from functools import partial

import torch
from scipy.linalg import sqrtm
from torch import Tensor, nn
from torch.func import grad
from torch.optim import Optimizer

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate, runs
from parnassus.optim.landscapes.trajectory import optimizer_trajectory
from parnassus.optim.optimisers.adagrad import AdaGrad, FullAdaGrad
from parnassus.optim.optimisers.adam import Adam, AdamW
from parnassus.optim.optimisers.rmsprop import RMSProp
from parnassus.optim.optimisers.sgd import SGD

START = torch.tensor([1.0, -0.7, 0.4], dtype=torch.float64)
SCALES = torch.tensor([1e-4, 3.0, -200.0], dtype=torch.float64)
"""Gradient of a linear function whose coordinates have very different scales."""


def coupled_convex_loss(theta: Tensor) -> Tensor:
    """Convex, with different curvatures and coupled coordinates."""
    return theta.cosh().sum() + 10 * (theta @ torch.tensor([1.0, 2.0, -1.0], dtype=theta.dtype) - 1).square()


def random_rotation() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    basis: Tensor = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64)).Q
    return basis


@claim("B3.3-2")
def full_matrix_adagrad_is_rotation_equivariant() -> Evidence:
    """Rotating the problem rotates the iterates of full AdaGrad, not those of the diagonal (book eqs. 3.34-3.35)."""
    rotation = random_rotation()

    def rotated_loss(theta: Tensor) -> Tensor:
        return coupled_convex_loss(rotation.mT @ theta)

    full, diagonal = (
        [
            optimizer_trajectory(loss, start, make, steps=40)
            for loss, start in ((coupled_convex_loss, START), (rotated_loss, rotation @ START))
        ]
        for make in (partial(FullAdaGrad, lr=0.3), partial(AdaGrad, lr=0.3))
    )
    # eq. 3.35 evaluated separately at step 5, where the matrix is invertible
    gradients = torch.stack([grad(coupled_convex_loss)(theta) for theta in full[0][:6]])
    root = torch.from_numpy(sqrtm((gradients.mT @ gradients).numpy()).real)
    expected = full[0][5] - 0.3 * torch.linalg.solve(root, gradients[5])
    return all_of(
        full_is_equivariant=close(full[1], full[0] @ rotation.mT, atol=1e-6),
        diagonal_is_not=greater_equal((diagonal[1] - diagonal[0] @ rotation.mT).abs().max(), 0.1),
        formula=close(full[0][6], expected, atol=1e-8),
        first_step_has_length_eta=close((full[0][1] - START).norm(), 0.3, rtol=1e-9),
    )


@claim("B3.3-3", "B3.3-7")
def adagrad_is_scale_invariant() -> Evidence:
    """AdaGrad matches torch; its first step has size η everywhere; c·f has the iterates of f (book eqs. 3.36-3.39)."""
    make = partial(AdaGrad, lr=0.3)
    path = optimizer_trajectory(coupled_convex_loss, START, make, steps=50)
    torch_path = optimizer_trajectory(coupled_convex_loss, START, partial(torch.optim.Adagrad, lr=0.3), steps=50)
    first = optimizer_trajectory(lambda theta: SCALES @ theta, START, make, steps=1).diff(dim=0)[0]
    squares, w = torch.zeros(3, 3, dtype=torch.float64), START  # eqs. 3.36-3.37 with their diagonal matrices
    for _ in range(50):
        gradient = grad(coupled_convex_loss)(w)
        squares = squares + torch.diag(gradient * gradient)
        w = w - 0.3 * torch.linalg.inv(squares.sqrt()) @ gradient
    return all_of(
        matches_torch=close(path, torch_path, atol=1e-12),
        first_step=close(first, -0.3 * SCALES.sign(), rtol=1e-5),
        scale=close(
            optimizer_trajectory(lambda theta: 1e4 * coupled_convex_loss(theta), START, make, steps=50), path, atol=1e-7
        ),
        matrices_and_vectors=close(w, path[-1], atol=1e-7),
    )


@erratum("B3.3-4", printed="R⁽ᵗ⁾ averages G⁽ᵗ⁾ = Σ_{i≤t} ∇f⊙∇f", right="R⁽ᵗ⁾ averages ∇f⊙∇f alone")
def averaging_a_cumulative_sum_does_not_forget() -> Correction:
    """For constant gradients RMSProp has step size η; as printed it decays like AdaGrad's (book eqs. 3.40-3.42)."""
    steps, eta = 1_000, 1.0

    def last_step(make: Callable[..., Optimizer]) -> Tensor:
        return -optimizer_trajectory(torch.sum, torch.zeros(1, dtype=torch.float64), make, steps=steps).diff(dim=0)[
            -1, 0
        ]

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
            printed_equals_adagrad=close(sizes[-1], steps**-0.5, rtol=0.01),
            printed_decays=rate(t[99:], torch.tensor(sizes[99:], dtype=torch.float64), -0.5, atol=0.02),
        ),
    )


@claim("B3.3-4", "B3.3-5", "B3.3-7")
def elementwise_rmsprop_equals_diagonal_matrix_rmsprop() -> Evidence:
    """Diagonal matrices, vectors and torch give the same iterates (book eqs. 3.41-3.42, ex. 3.3)."""
    alpha, eta, eps = 0.9, 1e-2, 1e-8
    matrix, w, path = torch.zeros(3, 3, dtype=torch.float64), START, [START]
    for _ in range(60):
        gradient = grad(coupled_convex_loss)(w)
        matrix = alpha * matrix + (1 - alpha) * torch.diag(gradient * gradient)
        w = w - eta * torch.linalg.inv(matrix.sqrt() + eps * torch.eye(3, dtype=torch.float64)) @ gradient
        path.append(w)
    iterates = optimizer_trajectory(coupled_convex_loss, START, partial(RMSProp, lr=eta, alpha=alpha), steps=60)
    torch_iterates = optimizer_trajectory(
        coupled_convex_loss, START, partial(torch.optim.RMSprop, lr=eta, alpha=alpha), steps=60
    )
    return all_of(
        matrices=close(iterates, torch.stack(path), atol=1e-10), torch_steps=close(iterates, torch_iterates, atol=1e-12)
    )


@claim("B3.3-6", "B3.3-7", "D1.5.7")
def adam_matches_torch() -> Evidence:
    """Adam matches torch and the formulas, with t from 1 and √ŝ + ε (book eqs. 3.43-3.48)."""
    eta, beta_1, beta_2, eps = 1e-2, 0.9, 0.99, 1e-8
    m = s = torch.zeros_like(START)
    path = [START]
    for t in range(1, 61):
        gradient = grad(coupled_convex_loss)(path[-1])
        m = beta_1 * m + (1 - beta_1) * gradient
        s = beta_2 * s + (1 - beta_2) * gradient * gradient
        path.append(path[-1] - eta * (m / (1 - beta_1**t)) / ((s / (1 - beta_2**t)).sqrt() + eps))
    iterates = optimizer_trajectory(coupled_convex_loss, START, partial(Adam, lr=eta, betas=(beta_1, beta_2)), steps=60)
    torch_iterates = optimizer_trajectory(
        coupled_convex_loss, START, partial(torch.optim.Adam, lr=eta, betas=(beta_1, beta_2)), steps=60
    )
    return all_of(
        formulas=close(iterates, torch.stack(path), atol=1e-12), torch_steps=close(iterates, torch_iterates, atol=1e-12)
    )


@claim("B3.3-6", "D1.5.7")
def first_adam_step_has_size_eta_in_every_coordinate() -> Evidence:
    """The first step is −η g/(|g| + ε); with β₁ = β₂ = 0 every step is sign descent (Diehl sec. 1.5)."""
    first = optimizer_trajectory(lambda theta: SCALES @ theta, START, partial(Adam, lr=1e-3), steps=1).diff(dim=0)[0]
    signs = optimizer_trajectory(
        coupled_convex_loss, START, partial(Adam, lr=1e-3, betas=(0.0, 0.0), eps=0.0), steps=20
    )
    gradients = torch.stack([grad(coupled_convex_loss)(theta) for theta in signs[:-1]])
    return all_of(
        formula=close(first, -1e-3 * SCALES / (SCALES.abs() + 1e-8), rtol=1e-9),
        size=close(first.abs(), 1e-3, rtol=1e-3),
        sign_descent=close(signs.diff(dim=0), -1e-3 * gradients.sign(), atol=1e-15),
    )


@claim("B3.3-6", "D1.5.7")
def adam_corrects_the_initialisation_bias() -> Evidence:
    """For i.i.d. gradients E m̂ = E g and E ŝ = E g² at every t; E m = (1 − β₁ᵗ) E g (book eq. 3.46)."""
    chains, steps = 40_000, 30
    generator = torch.Generator().manual_seed(0)
    theta = nn.Parameter(torch.zeros(chains, dtype=torch.float64))
    optimizer = Adam([theta], betas=(0.9, 0.99))
    means, squares = [], []
    for _ in range(steps):
        theta.grad = 2 + torch.randn(chains, generator=generator, dtype=torch.float64)
        optimizer.step()
        means.append(optimizer.state[theta]["mean"].mean())
        squares.append(optimizer.state[theta]["squares"].mean())
    t = torch.arange(1, steps + 1)
    mean, square = torch.stack(means), torch.stack(squares)
    return all_of(
        mean=close(mean / (1 - 0.9**t), 2.0, rtol=0.01),
        square=close(square / (1 - 0.99**t), 5.0, rtol=0.01),
        uncorrected=close(mean, 2 * (1 - 0.9**t), rtol=0.01),
        uncorrected_square_at_step_1=less_equal(square[0], 0.06),
    )


@erratum("B3.3-6", "D1.5.7", printed="1 − βᵗ with t from 0", right="t = 1, 2, …, m = s = 0 before, √ŝ + ε")
def adam_bias_correction_starts_at_step_one() -> Correction:
    """At t = 0 the correction divides by 1 − β⁰ = 0, and the parameters become NaN (book eqs. 3.46-3.48)."""
    g = torch.tensor([0.5, -3.0, 0.0], dtype=torch.float64)
    m, s = 0.1 * g, 0.01 * g * g
    as_printed = (m / (1 - 0.9**0)) / (s / (1 - 0.99**0)).sqrt()
    from_one = (m / (1 - 0.9**1)) / (s / (1 - 0.99**1)).sqrt()
    step = optimizer_trajectory(lambda theta: g @ theta, START, partial(Adam, lr=1.0), steps=1).diff(dim=0)[0]
    return Correction(
        printed=close(as_printed, g.sign(), atol=1e-6),
        corrected=all_of(
            from_one=close(from_one[:2], g[:2].sign(), rtol=1e-12),
            zero_gradient_without_eps_is_nan=close(from_one[2].isnan().double(), 1.0),
            library_step=close(step, -g.sign(), atol=1e-6),
        ),
    )


@claim("B3.3-6")
def adam_rescales_an_l2_penalty_and_adamw_does_not() -> Evidence:
    """Adam's L2 penalty hardly shrinks weights with large gradients; AdamW shrinks all by 1 − ηλ (Diehl sec. 1.5)."""
    steps, eta, decay = 200, 1e-2, 0.1
    scales = torch.tensor([0.01, 1.0, 100.0], dtype=torch.float64)
    gradients = [scales * (-1) ** t for t in range(steps)]  # alternating, so that only the decay moves the weights

    def measure_shrinkage(make: Callable[..., Optimizer]) -> Tensor:
        """The decrease of weights of 1 by the decay, relative to the same run without decay."""
        ends = []
        for weight_decay in (0.0, decay):
            theta = nn.Parameter(torch.ones(3, dtype=torch.float64))
            optimizer = make([theta], weight_decay=weight_decay)
            for gradient in gradients:
                theta.grad = gradient.clone()
                optimizer.step()
            ends.append(theta.detach())
        return ends[0] - ends[1]

    coupled, decoupled = measure_shrinkage(partial(Adam, lr=eta)), measure_shrinkage(partial(AdamW, lr=eta))
    sgd = measure_shrinkage(partial(SGD, lr=1e-3))
    return all_of(
        coupled_depends_on_the_gradients=greater_equal(coupled[0] / coupled[2], 20.0),
        decoupled_does_not=close(decoupled, 1 - (1 - eta * decay) ** steps, rtol=0.1),
        equal_for_sgd=close(sgd, 1 - (1 - 1e-3 * decay) ** steps, rtol=0.1),
    )


@erratum("B3.3-7", printed="a line that ends in =", right="the call on the same line")
def rmsprop_listing_is_a_syntax_error() -> Correction:
    """An assignment cannot break after an equals sign; on one line it has the settings of `RMSProp` (book sec. 3.3)."""
    model = nn.Linear(2, 1)
    names = {"torch": torch, "model": model}
    call = "torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9)"

    def run(listing: str) -> dict[str, object]:
        exec(compile(listing, "listing", "exec"), found := dict(names))  # noqa: S102 - the listing is above
        return found

    joined = run(f"opt = {call}")["opt"]
    assert isinstance(joined, torch.optim.RMSprop)
    rmsprop = RMSProp(model.parameters(), lr=1e-3, alpha=0.9)
    settings = ("lr", "alpha", "eps", "weight_decay")
    return Correction(
        printed=runs(lambda: run(f"opt =\n    {call}"), unless=SyntaxError),
        corrected=close(
            torch.tensor([rmsprop.defaults[name] for name in settings]),
            torch.tensor([joined.defaults[name] for name in settings]),
        ),
    )
