"""Expected gradients: integrated gradients at random points, with a control variate (Erion et al. 2021)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Num
from torch import Tensor

from parnassus.shapley.attributions.attribution import Attribution
from parnassus.shapley.gradients.completeness import check_completeness, enforce_completeness
from parnassus.shapley.gradients.model_gradients import MAX_GRADIENT_VALUES, ModelGradients, check_inputs
from parnassus.shapley.gradients.path_integrals import interpolate


def expected_gradients(
    model: Callable[[Tensor], Tensor],
    x: Num[Tensor, "rows *shape"],
    background: Num[Tensor, "others *shape"],
    num_draws: int = 200,
    *,
    generator: torch.Generator | None = None,
) -> Attribution:
    """φ_j = E[(x_j − b_j) ∂_j f(b + α (x − b))] over random baselines b and uniform α (Erion et al. 2021).

    The sum over features has the known mean f(x) − E f(b) and serves as a control variate: its error, times the
    regression coefficient of each attribution on the sum, is subtracted. The attributions then sum to the prediction
    and have smaller standard errors.
    """
    check_inputs(x, background)
    if num_draws < 3:
        raise ValueError(f"num_draws must be at least three for standard errors; got num_draws={num_draws}")
    gradients = ModelGradients(model)
    drawn = gradient_moments(gradients, x, background, num_draws, generator=generator)
    base_values, prediction = gradients.base_values_and_prediction(x, background)
    sum_variance = drawn.covariance_with_sum.sum(-1, keepdim=True)
    sum_errors = (sum_variance[..., 0].clamp(min=0) / num_draws).sqrt()
    check_completeness(prediction, base_values, drawn.mean, 2 * sum_errors)
    coefficient = drawn.covariance_with_sum / sum_variance.masked_fill(sum_variance == 0, 1.0)
    residual = (drawn.variance - coefficient * drawn.covariance_with_sum).clamp(min=0)
    values = enforce_completeness(drawn.mean, drawn.covariance_with_sum, prediction - base_values)
    return Attribution(
        base_values=base_values, values=values, errors=(residual / (num_draws - 2)).sqrt(), evaluations=num_draws
    )


class GradientMoments(NamedTuple):
    """Mean and variance of (x_j − b_j) ∂_j f over draws, and its covariance with the sum over j."""

    mean: Float[Tensor, "rows outputs features"]
    variance: Float[Tensor, "rows outputs features"]
    covariance_with_sum: Float[Tensor, "rows outputs features"]


def gradient_moments(
    gradients: ModelGradients,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    num_draws: int,
    *,
    generator: torch.Generator | None = None,
) -> GradientMoments:
    """Moments over random baselines and positions, shared by all rows, before completeness is enforced."""
    other = torch.randint(len(background), (num_draws,), generator=generator).to(x.device)
    alpha = torch.rand(num_draws, generator=generator, dtype=torch.float64).to(x.device)
    rows = torch.arange(len(x), device=x.device)[:, None]
    outputs = gradients.outputs(x[:1]).shape[1]
    mean = x.new_zeros(len(x), outputs, x[0].numel(), dtype=torch.float64)
    squares, products = torch.zeros_like(mean), torch.zeros_like(mean)
    for batch in torch.arange(num_draws, device=x.device).split(max(1, MAX_GRADIENT_VALUES // mean.numel())):
        line = rows * len(background) + other[batch]
        z = interpolate(x, background, line, alpha[batch].expand_as(line))
        step = (x[:, None] - background[other[batch]]).flatten(2).double()
        products_with_step = gradients(z.flatten(0, 1)).unflatten(0, (len(x), -1)) * step[:, :, None]
        previous, weight = mean.clone(), len(batch) / (int(batch[-1]) + 1)
        mean += weight * (products_with_step.mean(1) - previous)
        new_deviation, old_deviation = products_with_step - mean[:, None], products_with_step - previous[:, None]
        squares += (new_deviation * old_deviation).sum(1)  # Welford's update, batch by batch
        products += (new_deviation * old_deviation.sum(-1, keepdim=True)).sum(1)
    return GradientMoments(mean, squares / (num_draws - 1), products / (num_draws - 1))
