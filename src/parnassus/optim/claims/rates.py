"""Claims about the learning rate: how large, how found, how scheduled (book sec. 1.3)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.optim.gradient_descent import gradient_descent
from parnassus.optim.rate_finder import find_rate
from parnassus.optim.schedules import one_cycle_momentum, one_cycle_rate
from parnassus.optim.validation import hold_out, validation_search

CURVATURES = torch.tensor([4.0, 1.0, 0.25], dtype=torch.float64)
"""Of the quadratic ℓ(θ) = ½ Σ β_i θ_i²; the largest is β = 4, so that 2/β = ½."""


def quadratic(theta: Tensor) -> Tensor:
    return (CURVATURES * theta.square()).sum() / 2


def round_bowl(beta: float, theta: Tensor) -> Tensor:
    return beta * theta.square().sum() / 2


@claim("B1.3-9")
def descent_converges_up_to_two_over_beta() -> Evidence:
    """On a quadratic of largest curvature β, descent converges below η = 2/β and diverges above (book sec. 1.3)."""
    start = torch.ones(3, dtype=torch.float64)
    last = {eta: quadratic(gradient_descent(quadratic, start, rate=eta, steps=400)[-1]) for eta in (0.01, 0.49, 0.51)}
    best = 2 / (CURVATURES.max() + CURVATURES.min())
    return all_of(
        just_below=at_most(last[0.49], 1e-10),
        just_above=at_least(last[0.51], 1e5),
        small_is_slow=at_least(last[0.01], 1e-3),
        between=at_most(quadratic(gradient_descent(quadratic, start, rate=float(best), steps=400)[-1]), 1e-20),
    )


@claim("B1.3-10")
def validation_never_sees_training() -> Evidence:
    """No row is in both training and validation, each is in one; the search keeps the best rate (book sec. 1.3)."""
    train, validation = hold_out(100, 0.2, generator=torch.Generator().manual_seed(0))

    def end(eta: float) -> float:
        return float(quadratic(gradient_descent(quadratic, torch.ones(3, dtype=torch.float64), rate=eta, steps=50)[-1]))

    search = validation_search([0.001, 0.01, 0.1, 0.45, 0.6], end)
    return all_of(
        no_leak=close(float(torch.isin(train, validation).sum()), 0.0),
        all_rows=close(torch.cat([train, validation]).sort().values, torch.arange(100)),
        sizes=close(torch.tensor([len(train), len(validation)]), torch.tensor([80, 20])),
        best=close(search.best, 0.45),
    )


@claim("B1.3-11")
def the_finder_stops_at_two_over_beta() -> Evidence:
    """With one curvature β the finder ends one growth step below 2/β; several let it overshoot (book sec. 1.3)."""
    growth = 1e8 ** (1 / 99)
    theta = nn.Parameter(torch.ones(3, dtype=torch.float64))
    single = [
        find_rate([theta], partial(round_bowl, beta, theta)).safe * beta / 2 for beta in (0.5, 1.0, 3.0, 10.0, 50.0)
    ]
    uneven = find_rate([theta], lambda: quadratic(theta)).safe / 0.5
    return all_of(
        below=at_most(torch.tensor(single), 1.0),
        within_one_growth=at_least(torch.tensor(single), 1 / growth),
        parameters_put_back=close(theta, 1.0),
        steep_direction_already_at_rest=at_least(uneven, 1.0),
        still_within_ten=at_most(uneven, 10.0),
    )


@claim("B1.3-12", "B1.4-15")
def one_cycle_is_the_scheduler_of_torch() -> Evidence:
    """Rate and momentum as functions of the step equal OneCycleLR's at every step, peak included (book sec. 1.3)."""
    steps = 4_690  # five epochs of 938
    rates, momenta = _torch_one_cycle(steps, peak=0.01)
    ours = torch.tensor([one_cycle_rate(step, steps, peak=0.01) for step in range(steps)], dtype=torch.float64)
    momentum = torch.tensor([one_cycle_momentum(step, steps) for step in range(steps)], dtype=torch.float64)
    top = int(ours.argmax())
    return all_of(
        rate=close(ours, rates, rtol=1e-12),
        momentum=close(momentum, momenta, rtol=1e-12),
        rises=at_least(ours[: top + 1].diff(), 0.0),
        falls=at_most(ours[top:].diff(), 0.0),
        peak=close(ours.max(), 0.01, rtol=1e-12),
        turns_at_three_tenths=close(top, 0.3 * steps - 1, atol=1.0),
    )


@erratum("B1.3-12", printed="annealing ends at the rate where warm-up began", right="torch ends at peak / 25 / 10⁴")
def one_cycle_ends_below_its_start() -> Correction:
    """The 1cycle of torch begins at peak/25 and ends ten thousand times lower (book sec. 1.3)."""
    rates, _ = _torch_one_cycle(1_000, peak=0.01)
    symmetric = one_cycle_rate(999, 1_000, peak=0.01, end_factor=1.0)
    return Correction(
        printed=close(rates[-1], rates[0], rtol=0.01),
        corrected=all_of(
            start=close(rates[0], 0.01 / 25, rtol=1e-12),
            end=close(rates[-1], 0.01 / 25 / 1e4, rtol=1e-9),
            back_to_the_start_by_request=close(symmetric, one_cycle_rate(0, 1_000, peak=0.01), rtol=1e-12),
        ),
    )


@erratum("B1.4-15", printed="SGD without momentum under OneCycleLR", right="pass cycle_momentum=False to keep it at 0")
def one_cycle_sets_a_momentum() -> Correction:
    """OneCycleLR overwrites the momentum of plain SGD: 0 becomes 0.95, then 0.85 and back (book ex. 1.2)."""
    _, momenta = _torch_one_cycle(500, peak=0.01)
    _, untouched = _torch_one_cycle(500, peak=0.01, cycle_momentum=False)
    return Correction(
        printed=close(momenta, 0.0),
        corrected=all_of(
            first=close(momenta[0], 0.95), lowest=close(momenta.min(), 0.85, atol=1e-6), when_told=close(untouched, 0.0)
        ),
    )


def _torch_one_cycle(steps: int, *, peak: float, cycle_momentum: bool = True) -> tuple[Tensor, Tensor]:
    """Rate and momentum of plain SGD at each step under torch's scheduler."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1e-3)
    scheduler = OneCycleLR(optimizer, max_lr=peak, total_steps=steps, cycle_momentum=cycle_momentum)
    seen = []
    for _ in range(steps):
        group = optimizer.param_groups[0]
        seen.append((group["lr"], group["momentum"]))
        optimizer.step()
        if len(seen) < steps:
            scheduler.step()
    table = torch.tensor(seen, dtype=torch.float64)
    return table[:, 0], table[:, 1]
