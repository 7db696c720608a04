"""Noise models and the losses they are: the negative log-likelihood of what was observed (Zhao sec. 3).

Assume how the noise is distributed, and the loss follows: normal noise gives the squared error, Laplace noise the
absolute one, labels drawn from a softmax the cross-entropy of `parnassus.losses.classification`.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.losses.regression import absolute_error
from parnassus.losses.shapes import require_alike
from parnassus.losses.squared import mean_squared_error
from parnassus.probability.normal import normal_log_density


def normal_nll(
    prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"], *, sigma: float
) -> Float[Tensor, " batch"]:
    """−log p(y|x) of each example when y = ŷ(x) + ε with ε ~ N(0, σ²) (Zhao sec. 3).

        −log P(y|X) = Σ_i [½ log(2πσ²) + (y_i − ŷ_i)² / (2σ²)] = n/2 log(2πσ²) + n/σ² · L

    L is the half mean squared error, so at fixed σ both have the same minimiser.
    """
    _require_positive(sigma=sigma)
    require_alike(prediction, target)
    return -normal_log_density(target, mean=prediction, variance=sigma**2)


def laplace_nll(
    prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"], *, scale: float
) -> Float[Tensor, " batch"]:
    """−log p(y|x) = log(2s) + |y − ŷ| / s for Laplace noise of scale s: the absolute error, up to scale and shift."""
    _require_positive(scale=scale)
    return log(2 * scale) + absolute_error(prediction, target) / scale


def likeliest_sigma(prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """The σ that maximises the normal likelihood: σ² is the mean squared residual."""
    return mean_squared_error(prediction, target).sqrt()


def likeliest_scale(prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """The scale that maximises the Laplace likelihood: the mean absolute residual."""
    return absolute_error(prediction, target).mean()


def coin_nll(logit: Float[Tensor, ""], *, heads: int, tails: int) -> Float[Tensor, ""]:
    """−log of θ^heads (1 − θ)^tails with θ = sigmoid(logit), least where θ = heads / (heads + tails).

    In the logit the problem has no borders, and counts in the millions, whose likelihood is 0 in every float, are
    as easy as ten throws.
    """
    if heads < 0 or tails < 0:
        raise ValueError(f"counts must not be negative; got heads={heads}, tails={tails}")
    softplus = torch.nn.functional.softplus
    return heads * softplus(-logit) + tails * softplus(logit)


def _require_positive(**named: float) -> None:
    for name, value in named.items():
        if not value > 0:
            raise ValueError(f"the spread of the noise must be positive; got {name}={value}")
