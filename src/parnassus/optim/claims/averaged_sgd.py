"""Claims about SGD: convergence of the mean iterate, noise floor of a fixed learning rate (book sec. 3.1)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.optim.claims.convergence_bounds import run_gradient_descent, strongly_convex_problems
from parnassus.optim.convexity.convergence_bounds import averaged_sgd_bound, averaged_sgd_rate
from parnassus.optim.optimisers.averaged_sgd import averaged_sgd, biased_coin, coin_subgradient


@claim("B3.1-6")
def averaged_sgd_converges_as_one_over_root_t() -> Evidence:
    """E f(w̄) − f* ≤ Rρ/√T, tight within a factor of two on the biased-coin problem (bias 1/√T) (book sec. 3.1)."""
    sizes = [16, 64, 256, 1024]
    errors = torch.stack([averaged_sgd_error(steps, runs=4_000) for steps in sizes])
    t = torch.tensor(sizes, dtype=torch.float64)
    bound = averaged_sgd_bound(t, radius=1.0, lipschitz=1.0)
    return all_of(
        bound=less_equal(errors, bound),
        within_a_factor_of_two=greater_equal(errors, bound / 2),
        exponent=rate(t, errors, -0.5, atol=0.05),
    )


@claim("B3.1-6")
def exact_gradients_converge_faster_than_stochastic_ones() -> Evidence:
    """Exact gradients converge to the minimum; gradient noise at a fixed learning rate leaves a noise floor.

    On ½w² with gradient noise of variance σ² the stationary value is E w² = ησ²/(2 − η) (book sec. 3.1).
    """
    generator = torch.Generator().manual_seed(0)
    floors, predicted = [], []
    for eta in (0.05, 0.2, 0.8):
        w = torch.zeros(20_000, dtype=torch.float64)
        for _ in range(int(6 / eta)):
            w = w - eta * (w + torch.randn(w.shape, generator=generator, dtype=torch.float64))
        floors.append(w.square().mean())
        predicted.append(eta / (2 - eta))
    exact = strongly_convex_problems()[0]
    return all_of(
        floor=close(torch.stack(floors), torch.tensor(predicted).double(), rtol=0.04),
        exact_gradients=less_equal(exact.excess(run_gradient_descent(exact, steps=400))[-1], 1e-12),
    )


def averaged_sgd_error(steps: int, *, runs: int) -> Tensor:
    """Mean suboptimality of w̄ over `runs` runs on the biased-coin problem (bias 1/√T)."""
    bias = steps**-0.5
    problem = biased_coin(bias)
    subgradient = coin_subgradient(bias, generator=torch.Generator().manual_seed(0))
    eta = averaged_sgd_rate(steps, radius=1.0, lipschitz=1.0)
    return problem.excess(
        averaged_sgd(subgradient, problem.start.repeat(runs, 1), learning_rate=eta, steps=steps)
    ).mean()
