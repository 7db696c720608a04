"""Claims about stochastic descent: its mean place, and the floor of a fixed rate (book sec. 3.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.optim.averaging import averaged_descent, biased_coin, coin_slope
from parnassus.optim.bounds import averaged_bound, averaging_rate
from parnassus.optim.claims.convergence import descend, strong_problems


@claim("B3.1-6")
def averaged_stochastic_descent_falls_as_one_over_root_t() -> Evidence:
    """E f(w̄) − f* ≤ Rρ/√T; on coins of bias 1/√T it is within a factor of two of that (book sec. 3.1)."""
    sizes = [16, 64, 256, 1024]
    errors = torch.stack([averaged_error(steps, runs=4_000) for steps in sizes])
    t = torch.tensor(sizes, dtype=torch.float64)
    bound = averaged_bound(t, radius=1.0, lipschitz=1.0)
    return all_of(
        bound=at_most(errors, bound), near_it=at_least(errors, bound / 2), exponent=rate(t, errors, -0.5, atol=0.05)
    )


@claim("B3.1-6")
def curvature_and_exact_slopes_do_better() -> Evidence:
    """With exact gradients the same smooth problem has rate 1/T or better; noise at a fixed rate leaves a floor.

    On ½w² with noise of variance σ² the floor is E w² = ησ²/(2 − η), however long one waits (book sec. 3.1).
    """
    generator = torch.Generator().manual_seed(0)
    floors, predicted = [], []
    for eta in (0.05, 0.2, 0.8):
        w = torch.zeros(20_000, dtype=torch.float64)
        for _ in range(int(6 / eta)):
            w = w - eta * (w + torch.randn(w.shape, generator=generator, dtype=torch.float64))
        floors.append(w.square().mean())
        predicted.append(eta / (2 - eta))
    exact = strong_problems()[0]
    return all_of(
        floor=close(torch.stack(floors), torch.tensor(predicted).double(), rtol=0.04),
        exact_slopes=at_most(exact.excess(descend(exact, steps=400))[-1], 1e-12),
    )


def averaged_error(steps: int, *, runs: int) -> Tensor:
    """Mean excess of w̄ over `runs` runs on the coin that is hardest for so many steps."""
    bias = steps**-0.5
    problem = biased_coin(bias)
    slope = coin_slope(bias, generator=torch.Generator().manual_seed(0))
    eta = averaging_rate(steps, radius=1.0, lipschitz=1.0)
    return problem.excess(averaged_descent(slope, problem.start.repeat(runs, 1), rate=eta, steps=steps)).mean()
