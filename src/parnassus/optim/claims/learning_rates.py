"""Claims about the learning rate: stability limit, learning-rate finder, schedules (book sec. 1.3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.optim.claims.gradient_descent import CURVATURES, quadratic_loss
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.optim.training.holdout_validation import holdout_indices, validation_search
from parnassus.optim.training.learning_rate_finder import find_learning_rate
from parnassus.optim.training.learning_rate_schedules import one_cycle_momentum, one_cycle_rate


def isotropic_loss(beta: float, theta: Tensor) -> Tensor:
    return beta * theta.square().sum() / 2


@claim("B1.3-9")
def gradient_descent_converges_below_two_over_beta() -> Evidence:
    """On a quadratic with curvatures up to β, gradient descent converges if and only if η < 2/β (book sec. 1.3)."""
    start = torch.ones(3, dtype=torch.float64)
    last = {
        eta: quadratic_loss(gradient_descent(quadratic_loss, start, learning_rate=eta, steps=400)[-1])
        for eta in (0.01, 0.49, 0.51)
    }
    best = 2 / (CURVATURES.max() + CURVATURES.min())
    return all_of(
        below_the_limit=less_equal(last[0.49], 1e-10),
        above_the_limit=greater_equal(last[0.51], 1e5),
        small_rate_is_slow=greater_equal(last[0.01], 1e-3),
        best_rate=less_equal(
            quadratic_loss(gradient_descent(quadratic_loss, start, learning_rate=float(best), steps=400)[-1]), 1e-20
        ),
    )


@claim("B1.3-10")
def validation_and_training_sets_are_disjoint() -> Evidence:
    """Every example is in exactly one of both sets; the search selects the best rate (book sec. 1.3)."""
    train, validation = holdout_indices(100, 0.2, generator=torch.Generator().manual_seed(0))

    def final_loss(eta: float) -> float:
        return float(
            quadratic_loss(
                gradient_descent(quadratic_loss, torch.ones(3, dtype=torch.float64), learning_rate=eta, steps=50)[-1]
            )
        )

    search = validation_search([0.001, 0.01, 0.1, 0.45, 0.6], final_loss)
    return all_of(
        disjoint=close(float(torch.isin(train, validation).sum()), 0.0),
        all_examples=close(torch.cat([train, validation]).sort().values, torch.arange(100)),
        sizes=close(torch.tensor([len(train), len(validation)]), torch.tensor([80, 20])),
        best=close(search.best, 0.45),
    )


@claim("B1.3-11")
def learning_rate_finder_stops_near_two_over_beta() -> Evidence:
    """With one curvature β the finder stops one step below 2/β, with several it overshoots (book sec. 1.3)."""
    growth = 1e8 ** (1 / 99)
    theta = nn.Parameter(torch.ones(3, dtype=torch.float64))
    single = [
        find_learning_rate([theta], partial(isotropic_loss, beta, theta)).suggestion * beta / 2
        for beta in (0.5, 1.0, 3.0, 10.0, 50.0)
    ]
    uneven = find_learning_rate([theta], lambda: quadratic_loss(theta)).suggestion / 0.5
    return all_of(
        below=less_equal(torch.tensor(single), 1.0),
        within_one_step=greater_equal(torch.tensor(single), 1 / growth),
        parameters_restored=close(theta, 1.0),
        overshoots_with_several_curvatures=greater_equal(uneven, 1.0),
        by_less_than_ten=less_equal(uneven, 10.0),
    )


@claim("B1.3-12", "B1.4-15")
def one_cycle_matches_torch() -> Evidence:
    """Learning rate and momentum equal those of OneCycleLR at every step (book sec. 1.3)."""
    steps = 4_690  # five epochs of 938
    rates, momenta = _torch_one_cycle(steps, peak=0.01)
    learning_rates = torch.tensor(
        [one_cycle_rate(step, steps, peak=0.01) for step in range(steps)], dtype=torch.float64
    )
    momentum = torch.tensor([one_cycle_momentum(step, steps) for step in range(steps)], dtype=torch.float64)
    peak_step = int(learning_rates.argmax())
    return all_of(
        rate=close(learning_rates, rates, rtol=1e-12),
        momentum=close(momentum, momenta, rtol=1e-12),
        increases=greater_equal(learning_rates[: peak_step + 1].diff(), 0.0),
        decreases=less_equal(learning_rates[peak_step:].diff(), 0.0),
        peak=close(learning_rates.max(), 0.01, rtol=1e-12),
        peak_position=close(peak_step, 0.3 * steps - 1, atol=1.0),
    )


@erratum("B1.3-12", printed="annealing ends at the rate where warm-up began", right="torch ends at peak / 25 / 10⁴")
def one_cycle_ends_below_its_start() -> Correction:
    """OneCycleLR starts at peak/25 and ends 10⁴ times lower (book sec. 1.3)."""
    rates, _ = _torch_one_cycle(1_000, peak=0.01)
    symmetric = one_cycle_rate(999, 1_000, peak=0.01, final_div_factor=1.0)
    return Correction(
        printed=close(rates[-1], rates[0], rtol=0.01),
        corrected=all_of(
            start=close(rates[0], 0.01 / 25, rtol=1e-12),
            end=close(rates[-1], 0.01 / 25 / 1e4, rtol=1e-9),
            final_div_factor_1_is_symmetric=close(symmetric, one_cycle_rate(0, 1_000, peak=0.01), rtol=1e-12),
        ),
    )


@erratum("B1.4-15", printed="SGD without momentum under OneCycleLR", right="pass cycle_momentum=False to keep it at 0")
def one_cycle_lr_overrides_momentum() -> Correction:
    """OneCycleLR overwrites the momentum of plain SGD: 0 becomes 0.95, then 0.85 and back (book ex. 1.2)."""
    _, momenta = _torch_one_cycle(500, peak=0.01)
    _, constant = _torch_one_cycle(500, peak=0.01, cycle_momentum=False)
    return Correction(
        printed=close(momenta, 0.0),
        corrected=all_of(
            first=close(momenta[0], 0.95),
            minimum=close(momenta.min(), 0.85, atol=1e-6),
            schedule=close(momenta, torch.tensor([one_cycle_momentum(step, 500) for step in range(500)]), atol=1e-6),
            cycle_momentum_false=close(constant, 0.0),
        ),
    )


def _torch_one_cycle(steps: int, *, peak: float, cycle_momentum: bool = True) -> tuple[Tensor, Tensor]:
    """Learning rate and momentum of SGD at each step under torch's OneCycleLR."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1e-3)
    scheduler = OneCycleLR(optimizer, max_lr=peak, total_steps=steps, cycle_momentum=cycle_momentum)
    settings = []
    for _ in range(steps):
        group = optimizer.param_groups[0]
        settings.append((group["lr"], group["momentum"]))
        optimizer.step()
        if len(settings) < steps:
            scheduler.step()
    table = torch.tensor(settings, dtype=torch.float64)
    return table[:, 0], table[:, 1]
