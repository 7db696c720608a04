"""Tweedie's formula: posterior mean and covariance of clean data from scores (Efron 2011)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.scores.score_matching import ScoreFunction
from parnassus.diffusion.scores.vector_fields import value_and_jacobian


def tweedie_mean(
    score: ScoreFunction, x: Float[Tensor, "batch *event"], *, noise_std: float, scale: float = 1.0
) -> Float[Tensor, "batch *event"]:
    """E[x_0 | x] for x = a x_0 + b ε, from the score of the noisy density (book sec. 13.3).

        E[x_0 | x] = (x + b² ∇ log q(x)) / a

    With a = √ᾱ_t and b = √(1 − ᾱ_t) it is the prediction x̂_0 of a denoiser.
    """
    _check_scales(scale, noise_std)
    return (x + noise_std**2 * score(x)) / scale


def tweedie_covariance(
    score: ScoreFunction, x: Float[Tensor, "batch *event"], *, noise_std: float, scale: float = 1.0
) -> Float[Tensor, "batch d d"]:
    """Cov[x_0 | x] = b²/a² (I + b² ∇∇ log q(x)), from the Jacobian of the score."""
    _check_scales(scale, noise_std)
    _, hessian = value_and_jacobian(score, x)
    return (noise_std / scale) ** 2 * (
        torch.eye(hessian.shape[-1], dtype=hessian.dtype, device=hessian.device) + noise_std**2 * hessian
    )


def _check_scales(scale: float, noise_std: float) -> None:
    if not scale > 0 or not noise_std >= 0:
        raise ValueError(f"scale must be > 0 and noise_std ≥ 0; got scale={scale}, noise_std={noise_std}")
