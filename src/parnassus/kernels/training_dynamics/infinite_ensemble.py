"""Infinite ensembles of infinitely wide networks under gradient flow (Shwartz-Ziv & Alemi 2020)."""

from dataclasses import dataclass
from math import e, log, pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.kernels.infinite_width.network import Network
from parnassus.kernels.training_dynamics.gradient_flow import GradientFlow
from parnassus.probability import Gaussian, gaussian_kl, normal_density
from parnassus.probability.distributions.gaussian import symmetrise
from parnassus.probability.distributions.gaussian_conditioning import clip_rounded_eigenvalues

GRID_REACH, GRID_SIZE = 9.0, 301  # standard deviations and grid points per component, for integrals of mixtures


@dataclass(frozen=True)
class InfiniteEnsemble:
    """Networks with weights from N(0, 1), trained on the same n points for the time τ (book ch. 18).

        f_τ(x) ~ N(m, C),   M = Θ⁻¹ (I − e^{−τΘ})
        m(x)     = Θ(x, X) M y
        C(x, x') = K(x, x') + Θ(x, X) M K M Θ(X, x') − Θ(x, X) M K(X, x') − K(x, X) M Θ(X, x')

    with the NNGP kernel K of the initial outputs and the tangent kernel Θ. Outputs are Gaussian at every time, so their
    mutual information is computed without binning or sampling.
    """

    network: Network
    x: Float[Tensor, "n features"]
    y: Float[Tensor, " n"]
    nngp: Float[Tensor, "n n"]
    flow: GradientFlow

    @classmethod
    @accepts_arrays
    def fit(cls, network: Network, x: Float[Tensor, "n features"], y: Float[Tensor, " rows"]) -> "InfiniteEnsemble":
        """Compute both kernels of the training points."""
        if len(x) != len(y) or not len(x):
            raise ValueError(f"x and y need the same positive length; got {len(x)} points, {len(y)} targets")
        kernels = network.kernels(x)
        return cls(network, x, y, kernels.nngp, GradientFlow.from_kernel(kernels.ntk))

    def distribution(self, x: Float[Tensor, "m features"], time: float) -> Gaussian:
        """The joint distribution of the outputs f_τ at the points x over networks."""
        prior = self.network.nngp(x)
        cross = self.network.kernels(x, self.x)
        filtered = cross.ntk @ self.flow.matrix(self.flow.progress_at(time).gain)  # Θ(x, X) M
        shared = filtered @ cross.nngp.mT
        covariance = prior + filtered @ self.nngp @ filtered.mT - shared - shared.mT
        return Gaussian(filtered @ self.y, clip_rounded_eigenvalues(symmetrise(covariance), prior))

    def parameter_distance(self, time: float) -> float:
        """E ‖θ_τ − θ_0‖² = yᵀ M Θ M y + tr(K M Θ M), in the units of weights from N(0, 1)."""
        along = self.flow.modes.mT @ self.y
        spread = torch.einsum("in,ij,jn->n", self.flow.modes, self.nngp, self.flow.modes)
        gain = self.flow.progress_at(time).gain
        return float((gain.square() * self.flow.rates * (along.square() + spread)).sum())

    def expected_error(self, x: Float[Tensor, "m features"], y: Float[Tensor, " m"], time: float) -> float:
        """E (f_τ(x) − y)², averaged over the points: squared bias and variance."""
        outputs = self.distribution(x, time)
        return float(((outputs.mean - y).square() + outputs.covariance.diagonal()).mean())

    def information_gain(self, x: Float[Tensor, "m features"], time: float) -> float:
        """KL(p(f_τ | D) ‖ p(f_0)) of the outputs at the points x, in nats: an upper bound of I(Z; D | x).

        At training points it diverges for τ → ∞, because their outputs become deterministic.
        """
        outputs = self.distribution(x, time)
        prior = self.network.nngp(x)
        return float(gaussian_kl(outputs.mean, outputs.covariance, torch.zeros_like(outputs.mean), prior))


def input_mutual_information(
    means: Float[Tensor, " n"], variances: Float[Tensor, " n"], *, base: float = e
) -> Float[Tensor, ""]:
    """I(X; Z) for X uniform on n inputs and Z | X = i ~ N(m_i, v_i), a mutual information in nats by default.

        I(X; Z) = h(Z) − h(Z | X),   h(Z | X) = mean_i ½ log(2πe v_i)

    h(Z) by the trapezoidal rule on a grid that is dense around every component. At most log n.
    """
    _check_components(means, variances)
    conditional = (2 * pi * e * variances).log().mean() / 2
    return (_mixture_entropy(means, variances, _grid(means, variances)) - conditional) / log(base)


def label_mutual_information(
    means: Float[Tensor, " n"], variances: Float[Tensor, " n"], labels: Int[Tensor, " n"], *, base: float = e
) -> Float[Tensor, ""]:
    """I(Y; Z) = h(Z) − Σ_y p(y) h(Z | Y = y) for labelled inputs, from entropies of Gaussian mixtures.

    At most I(X; Z), and at most the entropy of the labels.
    """
    _check_components(means, variances)
    z = _grid(means, variances)
    information = _mixture_entropy(means, variances, z)
    for label in labels.unique():
        in_class = labels == label
        conditional = _mixture_entropy(means[in_class], variances[in_class], z)
        information = information - in_class.double().mean().to(information) * conditional
    return information / log(base)


def _mixture_entropy(means: Tensor, variances: Tensor, z: Tensor) -> Tensor:
    density = normal_density(z[:, None], mean=means, variance=variances).mean(1)
    entropy: Tensor = torch.trapezoid(-torch.xlogy(density, density), z)
    return entropy


def _grid(means: Tensor, variances: Tensor) -> Tensor:
    steps = torch.linspace(-GRID_REACH, GRID_REACH, GRID_SIZE, dtype=means.dtype, device=means.device)
    return (means[:, None] + variances.sqrt()[:, None] * steps).flatten().sort().values


def _check_components(means: Tensor, variances: Tensor) -> None:
    if not bool((variances > 0).all()) or not bool(means.isfinite().all()):
        raise ValueError(
            f"outputs need positive variances and finite means; got a smallest variance of {float(variances.min()):g}: "
            "at τ = ∞ the outputs at training points are deterministic"
        )
