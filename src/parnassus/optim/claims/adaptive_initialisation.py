"""Claims about the initialisation of adaptive methods: first average, ε, torch's defaults (book sec. 3.3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, rate
from parnassus.optim.claims.adaptive_methods import START, coupled_convex_loss
from parnassus.optim.landscapes.trajectory import optimizer_trajectory
from parnassus.optim.optimisers.adagrad import AdaGrad
from parnassus.optim.optimisers.adam import Adam
from parnassus.optim.optimisers.rmsprop import RMSProp


@claim("B3.3-3", "B3.3-4", "B3.3-6")
def default_settings_match_torch() -> Evidence:
    """The defaults match torch: AdaGrad's ε = 10⁻¹⁰, RMSProp's α = 0.99, Adam's β = (0.9, 0.999) (book sec. 3.3)."""
    weights = [nn.Parameter(torch.zeros(1))]
    optimizers = AdaGrad(weights), RMSProp(weights), Adam(weights)
    torch_optimizers = torch.optim.Adagrad(weights), torch.optim.RMSprop(weights), torch.optim.Adam(weights)
    names = ("lr", "eps"), ("lr", "eps", "alpha"), ("lr", "eps", "betas")
    parts = {
        f"{type(optimizer).__name__}_{name}": close(
            torch.tensor(optimizer.defaults[name]), torch.tensor(torch_optimizer.defaults[name])
        )
        for optimizer, torch_optimizer, settings in zip(optimizers, torch_optimizers, names, strict=True)
        for name in settings
    }
    return all_of(**parts, epsilon_of_the_text=close(optimizers[0].defaults["eps"], 1e-10))


@erratum("B3.3-4", printed="R⁽⁰⁾ = 0, and w⁽¹⁾ = w⁽⁰⁾ − η(R⁽⁰⁾)^(−½)∇f", right="R⁽⁻¹⁾ = 0; divide by √R + ε")
def rmsprop_average_starts_one_step_earlier() -> Correction:
    """With R⁽⁰⁾ = 0 the first step divides by 0; with R⁽⁻¹⁾ = 0 it has size η/√(1 − α) (book eqs. 3.41-3.42).

    Without ε a coordinate whose gradient is 0 becomes NaN: 0/√0.
    """
    alpha, eta = 0.9, 0.01
    gradient = torch.tensor([0.5, -3.0, 0.0], dtype=torch.float64)
    as_printed = -eta * gradient / torch.zeros(3, dtype=torch.float64).sqrt()
    one_before = -eta * gradient / ((1 - alpha) * gradient.square()).sqrt()
    predicted = -eta / (1 - alpha) ** 0.5 * gradient.sign()
    rmsprop_step = optimizer_trajectory(
        lambda w: gradient @ w, START, partial(RMSProp, lr=eta, alpha=alpha), steps=1
    ).diff(dim=0)[0]
    return Correction(
        printed=close(as_printed, predicted, rtol=0.1),
        corrected=all_of(
            one_before=close(one_before[:2], predicted[:2], rtol=1e-12),
            nan_without_epsilon=close(one_before[2].isnan().double(), 1.0),
            rmsprop_step=close(rmsprop_step, predicted, rtol=1e-6),
        ),
    )


@erratum(
    "B3.3-3", "B3.3-4", printed="eq. 3.36 is a mean of squares", right="it is a sum: the root mean square times √t"
)
def adagrad_sums_and_does_not_average() -> Correction:
    """The text calls AdaGrad's sum a root mean square; with a mean the step size would remain η (book sec. 3.3)."""
    steps, eta = 400, 1.0
    step_sizes = -optimizer_trajectory(
        torch.sum, torch.zeros(1, dtype=torch.float64), partial(AdaGrad, lr=eta), steps=steps
    ).diff(dim=0)
    t = torch.arange(1, steps + 1, dtype=torch.float64)
    squares = torch.ones(steps, dtype=torch.float64)  # all gradients are 1
    with_mean, with_sum = eta / (squares.cumsum(0) / t).sqrt(), eta / squares.cumsum(0).sqrt()
    return Correction(
        printed=close(step_sizes[:, 0], with_mean, rtol=0.1),
        corrected=all_of(
            sum=close(step_sizes[:, 0], with_sum, rtol=1e-9),
            decays=rate(t, step_sizes[:, 0], -0.5, atol=1e-6),
            ratio_is_root_t=close(with_mean / with_sum, t.sqrt(), rtol=1e-12),
        ),
    )


@claim("B3.3-5")
def rmsprop_exercise_is_elementwise_in_both_readings() -> Evidence:
    """With g = Σ∇f⊙∇f as printed, or ∇f⊙∇f: r ← αr + (1 − α)g, w ← w − η∇f ⊘ (√r + ε) (book ex. 3.3)."""
    alpha, eta, eps, steps = 0.9, 0.01, 1e-8, 40
    unit = torch.eye(3, dtype=torch.float64)

    def run_with_matrices(decay: float) -> Tensor:
        """Steps of eqs. 3.40-3.42 with g ← decay · g + ∇f⊙∇f: 1 is the printed sum, 0 the square alone."""
        g, average, w = torch.zeros_like(unit), torch.zeros_like(unit), START
        for _ in range(steps):
            gradient = grad(coupled_convex_loss)(w)
            g = decay * g + torch.diag(gradient * gradient)
            average = alpha * average + (1 - alpha) * g
            w = w - eta * torch.linalg.inv(average.sqrt() + eps * unit) @ gradient
        return w

    def run_with_vectors(decay: float) -> Tensor:
        g, r, w = torch.zeros_like(START), torch.zeros_like(START), START
        for _ in range(steps):
            gradient = grad(coupled_convex_loss)(w)
            g = decay * g + gradient * gradient
            r = alpha * r + (1 - alpha) * g
            w = w - eta * gradient / (r.sqrt() + eps)
        return w

    library = optimizer_trajectory(coupled_convex_loss, START, partial(RMSProp, lr=eta, alpha=alpha), steps=steps)[-1]
    return all_of(
        as_printed=close(run_with_vectors(1.0), run_with_matrices(1.0), atol=1e-12),
        standard=close(run_with_vectors(0.0), run_with_matrices(0.0), atol=1e-12),
        library_is_the_standard=close(library, run_with_vectors(0.0), atol=1e-12),
        the_two_differ=greater_equal((run_with_vectors(1.0) - library).abs().max(), 0.01),
    )
