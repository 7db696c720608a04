"""Infinitely many, infinitely wide networks under gradient flow: Gaussian at every time (Shwartz-Ziv & Alemi 2020)."""

from dataclasses import dataclass
from math import e, log, pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.kernels.gradient_flow import GradientFlow
from parnassus.kernels.network import Network
from parnassus.probability import Gaussian, gaussian_kl, normal_density
from parnassus.probability.conditioning import without_rounding
from parnassus.probability.gaussian import symmetric

REACH, FINE = 9.0, 301  # deviations around each component, and points there, where mixtures are integrated


@dataclass(frozen=True)
class InfiniteEnsemble:
    """Networks with weights from N(0, 1), all trained on the same n points for the time τ (book ch. 18).

        f_τ(x) ~ N(m, C),   M = Θ⁻¹ (I − e^{−τΘ})
        m(x)     = Θ(x, X) M y
        C(x, x') = K(x, x') + Θ(x, X) M K M Θ(X, x') − Θ(x, X) M K(X, x') − K(x, X) M Θ(X, x')

    with the NNGP kernel K of the first outputs and the tangent kernel Θ. The tangent kernel makes information
    computable: no binning, no sampling.
    """

    network: Network
    x: Float[Tensor, "n features"]
    y: Float[Tensor, " n"]
    nngp: Float[Tensor, "n n"]
    flow: GradientFlow

    @classmethod
    def fit(cls, network: Network, x: Float[Tensor, "n features"], y: Float[Tensor, " rows"]) -> "InfiniteEnsemble":
        """Both kernels of the training points, once for all times."""
        if len(x) != len(y) or not len(x):
            raise ValueError(f"need a target for each point, and at least one; got {len(x)} points, {len(y)} targets")
        kernels = network.kernels(x)
        return cls(network, x, y, kernels.nngp, GradientFlow.of(kernels.ntk))

    def law(self, x: Float[Tensor, "m features"], time: float) -> Gaussian:
        """The joint law of the outputs f_τ at the points x, over all networks."""
        prior = self.network.nngp(x)
        cross = self.network.kernels(x, self.x)
        pull = cross.ntk @ self.flow.matrix(self.flow.at(time).gain)  # Θ(x, X) M
        shared = pull @ cross.nngp.mT
        covariance = prior + pull @ self.nngp @ pull.mT - shared - shared.mT
        return Gaussian(pull @ self.y, without_rounding(symmetric(covariance), prior))

    def parameter_distance(self, time: float) -> float:
        """E ‖θ_τ − θ_0‖² = yᵀ M Θ M y + tr(K M Θ M), in the units of weights from N(0, 1)."""
        along = self.flow.modes.mT @ self.y
        spread = torch.einsum("in,ij,jn->n", self.flow.modes, self.nngp, self.flow.modes)
        gain = self.flow.at(time).gain
        return float((gain.square() * self.flow.rates * (along.square() + spread)).sum())

    def expected_error(self, x: Float[Tensor, "m features"], y: Float[Tensor, " m"], time: float) -> float:
        """E (f_τ(x) − y)², averaged over the points: squared bias and variance."""
        law = self.law(x, time)
        return float(((law.mean - y).square() + law.covariance.diagonal()).mean())

    def learned(self, x: Float[Tensor, "m features"], time: float) -> float:
        """KL(p(f_τ | D) ‖ p(f_0)) of the outputs at the points x, in nats: an upper bound of I(Z; D | x).

        At training points it grows without end, for their outputs become certain.
        """
        law = self.law(x, time)
        prior = self.network.nngp(x)
        return float(gaussian_kl(law.mean, law.covariance, torch.zeros_like(law.mean), prior))


def information_with_inputs(
    means: Float[Tensor, " n"], variances: Float[Tensor, " n"], *, base: float = e
) -> Float[Tensor, ""]:
    """I(X; Z) for X uniform on n inputs and Z | X = i ~ N(m_i, v_i): the entropy of the mixture less that of its parts.

        I(X; Z) = h(Z) − h(Z | X),   h(Z | X) = mean_i ½ log(2πe v_i)

    h(Z) by the trapezoidal rule on points that are dense around every component. At most log n.
    """
    _require_components(means, variances)
    parts = (2 * pi * e * variances).log().mean() / 2
    return (_mixture_entropy(means, variances, _grid(means, variances)) - parts) / log(base)


def information_with_labels(
    means: Float[Tensor, " n"], variances: Float[Tensor, " n"], labels: Int[Tensor, " n"], *, base: float = e
) -> Float[Tensor, ""]:
    """I(Y; Z) = h(Z) − Σ_y p(y) h(Z | Y = y) for inputs with labels: both are entropies of Gaussian mixtures.

    At most I(X; Z), and at most the entropy of the labels.
    """
    _require_components(means, variances)
    z = _grid(means, variances)
    whole = _mixture_entropy(means, variances, z)
    for label in labels.unique():
        own = labels == label
        whole = whole - own.double().mean().to(whole) * _mixture_entropy(means[own], variances[own], z)
    return whole / log(base)


def _mixture_entropy(means: Tensor, variances: Tensor, z: Tensor) -> Tensor:
    density = normal_density(z[:, None], mean=means, variance=variances).mean(1)
    entropy: Tensor = torch.trapezoid(-torch.xlogy(density, density), z)
    return entropy


def _grid(means: Tensor, variances: Tensor) -> Tensor:
    steps = torch.linspace(-REACH, REACH, FINE, dtype=means.dtype, device=means.device)
    return (means[:, None] + variances.sqrt()[:, None] * steps).flatten().sort().values


def _require_components(means: Tensor, variances: Tensor) -> None:
    if not bool((variances > 0).all()) or not bool(means.isfinite().all()):
        raise ValueError(
            f"outputs need positive variances and finite means; the least variance is {float(variances.min()):g}: "
            "at τ = ∞ the outputs at training points are certain"
        )
