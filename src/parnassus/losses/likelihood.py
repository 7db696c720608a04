"""Losses as negative log-likelihoods of noise models (Zhao sec. 3).

Normal noise gives the squared error, Laplace noise the absolute error, and labels sampled from a softmax give the
cross-entropy of `parnassus.losses.classification`.
"""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.losses.norms import l2_norm
from parnassus.losses.regression import absolute_error, check_prediction
from parnassus.probability.distributions.normal import normal_log_density


def normal_nll(
    prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"], *, sigma: float
) -> Float[Tensor, " batch"]:
    """−log p(y|x) of each example when y = ŷ(x) + ε with ε ~ N(0, σ²) (Zhao sec. 3).

        −log P(y|X) = Σ_i [½ log(2πσ²) + (y_i − ŷ_i)² / (2σ²)] = n/2 log(2πσ²) + n/σ² · L

    L is the half mean squared error, so at fixed σ both have the same minimiser.
    """
    check_positive(sigma=sigma)
    check_prediction(prediction, target)
    return -normal_log_density(target, mean=prediction, variance=sigma**2)


def laplace_nll(
    prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"], *, scale: float
) -> Float[Tensor, " batch"]:
    """−log p(y|x) = log(2s) + |y − ŷ| / s for Laplace noise of scale s."""
    check_positive(scale=scale)
    return log(2 * scale) + absolute_error(prediction, target) / scale


def normal_std_mle(prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Maximum-likelihood σ of normal noise: σ² is the mean squared residual."""
    check_prediction(prediction, target)
    deviation: Tensor = l2_norm(target - prediction) / len(target) ** 0.5
    return deviation


def laplace_scale_mle(prediction: Float[Tensor, " batch"], target: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Maximum-likelihood scale of Laplace noise: the mean absolute residual."""
    return absolute_error(prediction, target).mean()


def bernoulli_nll(logit: Float[Tensor, ""], *, heads: int, tails: int) -> Float[Tensor, ""]:
    """−log of θ^heads (1 − θ)^tails with θ = sigmoid(logit), minimal at θ = heads / (heads + tails).

    As a function of the logit the problem is unconstrained, and the value stays finite where the likelihood underflows.
    """
    if heads < 0 or tails < 0:
        raise ValueError(f"counts must not be negative; got heads={heads}, tails={tails}")
    softplus = torch.nn.functional.softplus
    return heads * softplus(-logit) + tails * softplus(logit)
