"""Claims about where adaptive methods begin: the first average, ε, and torch's defaults (book sec. 3.3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum, rate
from parnassus.optim.adagrad import AdaGrad
from parnassus.optim.adam import Adam
from parnassus.optim.claims.adaptive import START, uneven
from parnassus.optim.rmsprop import RMSProp
from parnassus.optim.trajectory import trajectory


@claim("B3.3-3", "B3.3-4", "B3.3-6")
def our_defaults_are_those_of_torch() -> Evidence:
    """AdaGrad's ε = 10⁻¹⁰ of the text, RMSProp's α = 0.99 and Adam's (0.9, 0.999) are defaults (book sec. 3.3)."""
    weights = [nn.Parameter(torch.zeros(1))]
    ours = AdaGrad(weights), RMSProp(weights), Adam(weights)
    theirs = torch.optim.Adagrad(weights), torch.optim.RMSprop(weights), torch.optim.Adam(weights)
    names = ("lr", "eps"), ("lr", "eps", "alpha"), ("lr", "eps", "betas")
    parts = {
        f"{type(mine).__name__}_{name}": close(torch.tensor(mine.defaults[name]), torch.tensor(torchs.defaults[name]))
        for mine, torchs, each in zip(ours, theirs, names, strict=True)
        for name in each
    }
    return all_of(**parts, epsilon_of_the_text=close(ours[0].defaults["eps"], 1e-10))


@erratum("B3.3-4", printed="R⁽⁰⁾ = 0, and w⁽¹⁾ = w⁽⁰⁾ − η(R⁽⁰⁾)^(−½)∇f", right="R⁽⁻¹⁾ = 0; divide by √R + ε")
def the_average_starts_one_step_before() -> Correction:
    """With R⁽⁰⁾ = 0 the first step divides by 0; with R⁽⁻¹⁾ = 0 it has size η/√(1 − α) (book eqs. 3.41-3.42).

    Without ε a coordinate whose slope is still 0 is lost: 0/√0 is not a number.
    """
    alpha, eta = 0.9, 0.01
    slope = torch.tensor([0.5, -3.0, 0.0], dtype=torch.float64)
    as_printed = -eta * slope / torch.zeros(3, dtype=torch.float64).sqrt()
    one_before = -eta * slope / ((1 - alpha) * slope.square()).sqrt()
    predicted = -eta / (1 - alpha) ** 0.5 * slope.sign()
    ours = trajectory(lambda w: slope @ w, START, partial(RMSProp, lr=eta, alpha=alpha), steps=1).diff(dim=0)[0]
    return Correction(
        printed=close(as_printed, predicted, rtol=0.1),
        corrected=all_of(
            one_before=close(one_before[:2], predicted[:2], rtol=1e-12),
            lost_without_epsilon=close(one_before[2].isnan().double(), 1.0),
            ours=close(ours, predicted, rtol=1e-6),
        ),
    )


@erratum("B3.3-3", "B3.3-4", printed="eq. 3.36 is a mean of squares", right="a sum: the root mean square times √t")
def adagrad_sums_and_does_not_average() -> Correction:
    """The name Root Mean Square is said to describe AdaGrad's sum; a mean would keep the steps at η (book sec. 3.3)."""
    steps, eta = 400, 1.0
    taken = -trajectory(torch.sum, torch.zeros(1, dtype=torch.float64), partial(AdaGrad, lr=eta), steps=steps).diff(
        dim=0
    )
    t = torch.arange(1, steps + 1, dtype=torch.float64)
    squares = torch.ones(steps, dtype=torch.float64)  # of slopes that are all 1
    with_mean, with_sum = eta / (squares.cumsum(0) / t).sqrt(), eta / squares.cumsum(0).sqrt()
    return Correction(
        printed=close(taken[:, 0], with_mean, rtol=0.1),
        corrected=all_of(
            sum=close(taken[:, 0], with_sum, rtol=1e-9),
            fades=rate(t, taken[:, 0], -0.5, atol=1e-6),
            apart_by_root_t=close(with_mean / with_sum, t.sqrt(), rtol=1e-12),
        ),
    )


@claim("B3.3-5")
def both_readings_of_the_problem_have_pointwise_steps() -> Evidence:
    """With g = Σ∇f⊙∇f as printed, or ∇f⊙∇f alone; r ← αr + (1 − α)g; w ← w − η∇f ⊘ (√r + ε) (book ex. 3.3)."""
    alpha, eta, eps, steps = 0.9, 0.01, 1e-8, 40
    unit = torch.eye(3, dtype=torch.float64)

    def by_matrices(kept: float) -> Tensor:
        """Steps of eqs. 3.40-3.42 where g keeps this share of its past: 1 is the printed sum, 0 the square alone."""
        g, average, w = torch.zeros_like(unit), torch.zeros_like(unit), START
        for _ in range(steps):
            slope = grad(uneven)(w)
            g = kept * g + torch.diag(slope * slope)
            average = alpha * average + (1 - alpha) * g
            w = w - eta * torch.linalg.inv(average.sqrt() + eps * unit) @ slope
        return w

    def by_vectors(kept: float) -> Tensor:
        g, r, w = torch.zeros_like(START), torch.zeros_like(START), START
        for _ in range(steps):
            slope = grad(uneven)(w)
            g = kept * g + slope * slope
            r = alpha * r + (1 - alpha) * g
            w = w - eta * slope / (r.sqrt() + eps)
        return w

    ours = trajectory(uneven, START, partial(RMSProp, lr=eta, alpha=alpha), steps=steps)[-1]
    return all_of(
        as_printed=close(by_vectors(1.0), by_matrices(1.0), atol=1e-12),
        standard=close(by_vectors(0.0), by_matrices(0.0), atol=1e-12),
        ours_is_the_standard=close(ours, by_vectors(0.0), atol=1e-12),
        the_two_differ=at_least((by_vectors(1.0) - ours).abs().max(), 0.01),
    )
