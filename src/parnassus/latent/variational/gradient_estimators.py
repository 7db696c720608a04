"""Estimators of the gradient of the ELBO with respect to the parameters of q (Diehl sec. 6).

    L(μ, log σ²) = E_q[log p(x|z) + log p(z) − log q(z)],   q = N(μ, diag σ²),   p(z) = N(0, I)

Every estimator takes z ↦ log p(x|z), q, and rows of standard normal noise, and returns one gradient per row. Training
uses their mean; their variance is the quality of the estimator.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, jacrev, vmap

from parnassus.errors import check_positive
from parnassus.latent.variational.reparametrisation import GaussianParameters, standard_normal_kl

LogLikelihood: TypeAlias = Callable[[Tensor], Tensor]
"""z ↦ log p(x|z) for one code z and a fixed x, or another scalar function of z."""


@runtime_checkable
class GradientEstimator(Protocol):
    """Gradients of the ELBO, one per row of noise; their mean is the estimate."""

    def __call__(
        self, log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"], /
    ) -> GaussianParameters: ...


def codes_from_noise(
    q: GaussianParameters, noise: Float[Tensor, "*samples latent"]
) -> Float[Tensor, "*samples latent"]:
    """Codes z = μ + σ ε ~ q for standard normal noise ε (Diehl sec. 6)."""
    return q.mean + (q.log_variance / 2).exp() * noise


def log_weight(log_likelihood: LogLikelihood, q: GaussianParameters, z: Float[Tensor, " latent"]) -> Float[Tensor, ""]:
    """The term log p(x, z) − log q(z) of one code; its mean under q is the ELBO (Diehl sec. 6)."""
    log_prior_ratio = q.log_variance + (z - q.mean).square() / q.log_variance.exp() - z.square()  # 2π cancels
    return log_likelihood(z) + log_prior_ratio.sum() / 2


def fixed_sample_gradient(
    log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"]
) -> GaussianParameters:
    """Autodiff with the samples as constants: −∇ log q(z), of mean zero (Diehl sec. 6, approach 0).

    It is wrong: the samples depend on the parameters, and for fixed z the gradient of log p(x, z) is zero.
    """

    def weight(parameters: GaussianParameters, z: Tensor) -> Tensor:
        return log_weight(log_likelihood, parameters, z)

    return _gradients(weight, q, codes_from_noise(q, noise))


def finite_difference_gradient(
    log_likelihood: LogLikelihood,
    q: GaussianParameters,
    noise: Float[Tensor, "samples latent"],
    *,
    step: float = 1e-4,
    second_noise: Float[Tensor, "samples latent"] | None = None,
) -> GaussianParameters:
    """[L(ϕ + h; ε) − L(ϕ − h; ε)] / 2h with h = `step` for every parameter (Diehl sec. 6, approach 0).

    Both evaluations use the same noise by default; with independent `second_noise` the variance grows as 1/h².
    """
    check_positive(step=step)

    def weights(parameters: Tensor, epsilon: Tensor) -> Tensor:
        shifted = GaussianParameters(*parameters.chunk(2))
        values: Tensor = vmap(lambda z: log_weight(log_likelihood, shifted, z))(codes_from_noise(shifted, epsilon))
        return values

    phi = torch.cat(q)
    offsets = step * torch.eye(len(phi), dtype=phi.dtype, device=phi.device)
    second = noise if second_noise is None else second_noise
    differences = [(weights(phi + h, noise) - weights(phi - h, second)) / (2 * step) for h in offsets]
    return GaussianParameters(*torch.stack(differences, 1).chunk(2, dim=1))


def reparametrisation_gradient(
    log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"]
) -> GaussianParameters:
    """∇ [log p(x, z) − log q(z)], also through z = μ + σ ε (Diehl sec. 6, approach 1; book fig. 6.1)."""

    def weight(parameters: GaussianParameters, epsilon: Tensor) -> Tensor:
        return log_weight(log_likelihood, parameters, codes_from_noise(parameters, epsilon))

    return _gradients(weight, q, noise)


def analytic_kl_gradient(
    log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"]
) -> GaussianParameters:
    """∇ [log p(x|z) − KL(q ‖ p(z))]: only the likelihood is sampled (Diehl sec. 6, approach 2; book eq. 6.13)."""

    def term(parameters: GaussianParameters, epsilon: Tensor) -> Tensor:
        return log_likelihood(codes_from_noise(parameters, epsilon)) - standard_normal_kl(*parameters)

    return _gradients(term, q, noise)


def bonnet_price_gradient(
    log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"]
) -> GaussianParameters:
    """∇_μ from gradients, ∇_{σ²} from Hessians of log p(x, z), with the exact entropy of q (Diehl sec. 6, approach 3).

    ∂L/∂log σ_j² = σ_j² · ½ E[∂²_j log p(x, z)] + ½
    """

    def log_joint(z: Tensor) -> Tensor:
        return log_likelihood(z) - z.square().sum() / 2

    gradient, half_hessian = bonnet_price_derivatives(log_joint, codes_from_noise(q, noise))
    return GaussianParameters(gradient, q.log_variance.exp() * half_hessian.diagonal(dim1=1, dim2=2) + 0.5)


def bonnet_price_derivatives(
    function: LogLikelihood, z: Float[Tensor, "samples latent"]
) -> tuple[Float[Tensor, "samples latent"], Float[Tensor, "samples latent latent"]]:
    """∇f and ½ ∇²f at each sample; their means are the gradients of E f with respect to μ and Σ (Rezende et al. 2014).

        ∇_μ E_{N(μ,Σ)} f = E ∇f            (Bonnet)
        ∇_Σ E_{N(μ,Σ)} f = ½ E ∇²f         (Price)

    f must be twice differentiable: at the kinks of ReLU networks the Hessian misses a contribution.
    """
    gradient = grad(function)
    return vmap(gradient)(z), vmap(jacrev(gradient))(z) / 2


def score_function_gradient(
    log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"]
) -> GaussianParameters:
    """[log p(x, z) − log q(z)] · ∇ log q(z), without derivatives of the model (REINFORCE, Williams 1992)."""
    return _score_times(_weights(log_likelihood, q, noise), q, noise)


def score_function_gradient_with_baseline(
    log_likelihood: LogLikelihood, q: GaussianParameters, noise: Float[Tensor, "samples latent"]
) -> GaussianParameters:
    """`score_function_gradient` with the mean weight of the other samples as baseline, unbiased as E ∇ log q = 0."""
    if len(noise) < 2:
        raise ValueError(f"a leave-one-out baseline needs at least two samples; got {len(noise)}")
    weights = _weights(log_likelihood, q, noise)
    others = (weights.sum() - weights) / (len(noise) - 1)
    return _score_times(weights - others, q, noise)


def _weights(log_likelihood: LogLikelihood, q: GaussianParameters, noise: Tensor) -> Tensor:
    weights: Tensor = vmap(lambda z: log_weight(log_likelihood, q, z))(codes_from_noise(q, noise))
    return weights


def _score_times(values: Tensor, q: GaussianParameters, noise: Tensor) -> GaussianParameters:
    """∇ log q(z) of each sample times its value: ε/σ with respect to μ, ½(ε² − 1) with respect to log σ²."""
    return GaussianParameters(
        values[:, None] * noise / (q.log_variance / 2).exp(), values[:, None] * (noise.square() - 1) / 2
    )


def _gradients(
    term: Callable[[GaussianParameters, Tensor], Tensor], q: GaussianParameters, rows: Tensor
) -> GaussianParameters:
    """The gradient of `term` with respect to the parameters, for each row."""
    gradient: GaussianParameters = vmap(grad(term), in_dims=(None, 0))(q, rows)
    return gradient
