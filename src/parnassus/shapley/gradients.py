"""Attributions by gradients: integrated, expected, and only at the input (book sec. 17.3).

They need no coalitions: a feature's part is its step from the baseline times its slope along the way. This is the value
of a game whose players come in gradually, all at the same pace (Aumann and Shapley 1974). Where the model is linear in
each feature it is Shapley's value. Elsewhere it is locally accurate too, and gives nothing to who does nothing, but it
depends on what the model says between baseline and input: consistency (book eq. 17.7) is lost.

Parts always sum to the prediction. What numbers or chance leave over is shared out by how uncertain the parts are, as
least squares would: a part that is certain, of an idle feature for one, is left alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Num
from torch import Tensor

from parnassus.shapley.attribution import Attribution
from parnassus.shapley.lines import along_lines, between
from parnassus.shapley.model import ModelError
from parnassus.shapley.slopes import TOGETHER, Slopes, demand_inputs

JUMP = 1e-3
"""Of what the model says: more may not be missing from the gradients without their knowledge."""


def gradient_times_input(
    model: Callable[[Tensor], Tensor], x: Num[Tensor, "rows *shape"], background: Num[Tensor, "others *shape"]
) -> Float[Tensor, "rows outputs features"]:
    """(x_j − E b_j) ∂_j f(x): one step of integrated gradients, from the wrong end.

    No Attribution, for these do not sum to anything: where the model is saturated they are 0, whatever it says.
    """
    demand_inputs(x, background)
    return (x - background.mean(0)).flatten(1)[:, None] * Slopes(model)(x)


def integrated_gradients(
    model: Callable[[Tensor], Tensor],
    x: Num[Tensor, "rows *shape"],
    background: Num[Tensor, "others *shape"],
    *,
    tolerance: float = 1e-6,
    most: int = 1_024,
) -> Attribution:
    """φ_j = E_b (x_j − b_j) ∫₀¹ ∂_j f(b + α (x − b)) dα over the baselines b (Sundararajan et al. 2017).

    With many baselines it is the expectation that expected gradients draw from. Lines are cut into pieces until none
    misses more than `tolerance` of what the model says; where `most` gradients will not do for that, what is left of
    them is spaced evenly. So a smooth network, or one of up to most/20 kinks on a line, is integrated to many digits
    (1e-9 from 50 gradients, 5e-6 from 270 across ten kinks); one of hundreds, as convolutions have, as by evenly spaced
    gradients, with an error of about 0.7/most. `errors` say how far the integrals may be off, `coalitions` at how many
    inputs of a row the model was asked for gradients.
    """
    demand_inputs(x, background)
    if tolerance <= 0 or most < 1:
        raise ValueError(f"tolerance and most must be positive; got tolerance={tolerance}, most={most}")
    slopes = Slopes(model)
    found = along_lines(slopes, x, background, tolerance=tolerance, most=most)
    base, prediction = slopes.answers(background).mean(0).expand(len(x), -1), slopes.answers(x)
    rounded = slopes.precision(x) * found.parts
    variance = found.errors.square() + rounded.square()
    demand_no_jump(prediction, base, found.parts, variance.sum(-1).sqrt())
    values = closed(found.parts, variance, prediction - base)
    return Attribution(base=base, values=values, errors=variance.sqrt(), coalitions=found.asked)


def expected_gradients(
    model: Callable[[Tensor], Tensor],
    x: Num[Tensor, "rows *shape"],
    background: Num[Tensor, "others *shape"],
    draws: int = 200,
    *,
    generator: torch.Generator | None = None,
) -> Attribution:
    """φ_j = E[(x_j − b_j) ∂_j f(b + α (x − b))] over random baselines b and uniform α (Erion et al. 2021).

    Every draw has a sum, of which the mean is known: f(x) − E f(b). It serves as a control variate. By how much it
    is missed says how much every part is off, as far as the two vary together; taken off, the parts sum up, and
    their standard errors are smaller.
    """
    demand_inputs(x, background)
    if draws < 3:
        raise ValueError(f"standard errors with a control need three draws; got draws={draws}")
    slopes = Slopes(model)
    drawn = moments(slopes, x, background, draws, generator=generator)
    base, prediction = slopes.answers(background).mean(0).expand(len(x), -1), slopes.answers(x)
    spread = drawn.with_sum.sum(-1, keepdim=True)  # the variance of the sums
    demand_no_jump(prediction, base, drawn.mean, 2 * (spread[..., 0].clamp(min=0) / draws).sqrt())
    share = drawn.with_sum / spread.masked_fill(spread == 0, 1.0)
    left = (drawn.variance - share * drawn.with_sum).clamp(min=0)
    values = closed(drawn.mean, drawn.with_sum, prediction - base)
    return Attribution(base=base, values=values, errors=(left / (draws - 2)).sqrt(), coalitions=draws)


class Moments(NamedTuple):
    """Of (x_j − b_j) ∂_j f over draws: mean, variance, and covariance with the sum over j."""

    mean: Float[Tensor, "rows outputs features"]
    variance: Float[Tensor, "rows outputs features"]
    with_sum: Float[Tensor, "rows outputs features"]


def moments(
    slopes: Slopes,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    draws: int,
    *,
    generator: torch.Generator | None = None,
) -> Moments:
    """Random baselines and places, the same for all rows; nothing is made to sum up yet."""
    other = torch.randint(len(background), (draws,), generator=generator).to(x.device)
    alpha = torch.rand(draws, generator=generator, dtype=torch.float64).to(x.device)
    rows = torch.arange(len(x), device=x.device)[:, None]
    outputs = slopes.answers(x[:1]).shape[1]
    mean = x.new_zeros(len(x), outputs, x[0].numel(), dtype=torch.float64)
    squares, products = torch.zeros_like(mean), torch.zeros_like(mean)
    for some in torch.arange(draws, device=x.device).split(max(1, TOGETHER // mean.numel())):
        line = rows * len(background) + other[some]
        z = between(x, background, line, alpha[some].expand_as(line))
        step = (x[:, None] - background[other[some]]).flatten(2).double()
        parts = slopes(z.flatten(0, 1)).unflatten(0, (len(x), -1)) * step[:, :, None]
        before, weight = mean.clone(), len(some) / (int(some[-1]) + 1)
        mean += weight * (parts.mean(1) - before)
        off, was_off = parts - mean[:, None], parts - before[:, None]  # Welford's update, a portion at a time
        squares += (off * was_off).sum(1)
        products += (off * was_off.sum(-1, keepdim=True)).sum(1)
    return Moments(mean, squares / (draws - 1), products / (draws - 1))


def closed(
    parts: Float[Tensor, "*games players"], covariance: Float[Tensor, "*games players"], total: Float[Tensor, "*games"]
) -> Float[Tensor, "*games players"]:
    """Parts that sum to `total`: what is missing goes to each as its error goes with that of the sum."""
    whole = covariance.sum(-1, keepdim=True)
    share = torch.where(whole > 0, covariance / whole.masked_fill(whole == 0, 1.0), 1 / parts.shape[-1])
    return parts + share * (total - parts.sum(-1))[..., None]


def demand_no_jump(
    prediction: Float[Tensor, "rows outputs"],
    base: Float[Tensor, "rows outputs"],
    parts: Float[Tensor, "rows outputs features"],
    errors: Float[Tensor, "rows outputs"],
) -> None:
    """Refuse a model that changes where its gradients say it does not."""
    change, found = prediction - base, parts.sum(-1)
    unexplained = (change - found).abs() - 5 * errors - JUMP * torch.maximum(prediction.abs(), base.abs())
    if bool((unexplained > 0).any()):
        row, output = divmod(int(unexplained.argmax()), change.shape[1])
        raise ModelError(
            f"from the baseline to row {row} the model's output {output} changes by {change[row, output]:.6g}, its "
            f"gradients on the way account for {found[row, output]:.6g}: it jumps, hides something from its gradients, "
            "or is too steep for so few of them; use explain, which only asks"
        )
