"""Annealed importance sampling (AIS): estimates of log Z and log p(x) (Neal 2001; book sec. 6.1).

The inverse temperatures β increase from 0 to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import softplus

from parnassus.errors import check_positive
from parnassus.latent.energy_based.hamiltonian_monte_carlo import hmc_step
from parnassus.latent.energy_based.restricted_boltzmann_machine import RBM
from parnassus.probability.inference.importance_sampling import LogDensity, effective_sample_size, log_mean_exp

DensityPath: TypeAlias = Callable[[Tensor, float], Tensor]
"""log f_β(x) for x and β, from a density that can be sampled (β = 0) to the target (β = 1)."""
Transition: TypeAlias = Callable[[Tensor, float, int], Tensor]
"""A transition that leaves f_β invariant, given a state, β and the index of the step."""


@dataclass(frozen=True)
class AISEstimate:
    """The log-weights of AIS chains, whose mean weight estimates Z₁/Z₀; further axes are independent problems.

    By Jensen's inequality `estimate` is below the true value in expectation, and it exceeds it by c with probability
    at most e⁻ᶜ: a stochastic lower bound, tighter with more temperatures and more chains.

    >>> AISEstimate(torch.zeros(10)).effective_sample_size.item()
    10.0
    """

    log_weights: Float[Tensor, "chains *batch"]

    @property
    def estimate(self) -> Float[Tensor, "*batch"]:
        """The logarithm of (1/n) Σ_i w_i."""
        return log_mean_exp(self.log_weights, 0)

    @property
    def effective_sample_size(self) -> Float[Tensor, "*batch"]:
        """(Σ w)² / Σ w², from 1 to the number of chains."""
        return effective_sample_size(self.log_weights, 0)

    @property
    def standard_error(self) -> Float[Tensor, "*batch"]:
        """The standard error of `estimate` to first order, √(1/ESS − 1/n); it misses modes that no chain visited."""
        return (1 / self.effective_sample_size - 1 / len(self.log_weights)).clamp(min=0).sqrt()


@dataclass(frozen=True)
class ReverseAISEstimate(AISEstimate):
    """Chains run backwards from samples of the target: weights of Z₀/Z₁, hence a stochastic upper bound.

    >>> ReverseAISEstimate(torch.ones(10)).estimate.item()
    -1.0
    """

    @property
    def estimate(self) -> Float[Tensor, "*batch"]:
        """−log (1/n) Σ_i w_i."""
        return -log_mean_exp(self.log_weights, 0)


def sigmoid_inverse_temperatures(count: int, *, steepness: float = 4.0) -> Float[Tensor, " betas"]:
    """`count` + 1 values from 0 to 1, denser at both ends, where most densities change fastest."""
    check_positive(count=count)
    ramp = torch.linspace(-steepness, steepness, count + 1, dtype=torch.float64).sigmoid()
    return (ramp - ramp[0]) / (ramp[-1] - ramp[0])


def geometric_path(log_start: LogDensity, log_target: LogDensity) -> DensityPath:
    """The geometric path log f_β = (1 − β) log f₀ + β log f₁."""

    def log_density(x: Tensor, beta: float) -> Tensor:
        return (1 - beta) * log_start(x) + beta * log_target(x)

    return log_density


def anneal(
    path: DensityPath, transition: Transition, start: Float[Tensor, "chains *rest"], betas: Float[Tensor, " betas"]
) -> AISEstimate:
    """Move samples of f₀ towards f₁ and accumulate their importance weights (Neal 2001).

    w = ∏_k f_{β_k}(x_{k−1}) / f_{β_{k−1}}(x_{k−1}),   x_k ~ T_{β_k}(x_{k−1}),   E[w] = Z₁ / Z₀
    """
    _check_betas(betas)
    x, log_weights = start, torch.zeros_like(path(start, 0.0))
    for index, (before, after) in enumerate(pairwise(betas.tolist())):
        log_weights = log_weights + path(x, after) - path(x, before)
        x = transition(x, after, index)
    return AISEstimate(log_weights)


def reverse_anneal(
    path: DensityPath, transition: Transition, end: Float[Tensor, "chains *rest"], betas: Float[Tensor, " betas"]
) -> ReverseAISEstimate:
    """Reverse AIS from exact samples of f₁ to f₀, with reversible transitions (Grosse et al. 2015).

    E[∏_k f_{β_{k−1}}(x_{k−1}) / f_{β_k}(x_{k−1})] = Z₀ / Z₁
    """
    _check_betas(betas)
    x, log_weights = end, torch.zeros_like(path(end, 1.0))
    for index, (before, after) in reversed(list(enumerate(pairwise(betas.tolist())))):
        x = transition(x, after, index)
        log_weights = log_weights + path(x, before) - path(x, after)
    return ReverseAISEstimate(log_weights)


@torch.no_grad()
def ais_log_evidence(
    log_joint: LogDensity,
    start: Distribution,
    *,
    num_chains: int = 16,
    num_temperatures: int = 100,
    num_leapfrog_steps: int = 10,
) -> AISEstimate:
    """A lower bound of log p(x) = log ∫ p(x, z) dz for each row of a batch, with HMC transitions (Wu et al. 2017).

    `log_joint` maps codes (chains, batch, dim) to log p(x, z) (chains, batch); `start` is any normalised
    distribution of batch shape (batch,) over the codes: the prior, or better an encoder's q(z|x).
    """
    betas = sigmoid_inverse_temperatures(num_temperatures)
    path = geometric_path(start.log_prob, log_joint)
    step_sizes = tune_step_sizes(
        path, start.sample((min(num_chains, 8),)), betas, num_leapfrog_steps=num_leapfrog_steps
    )
    return anneal(path, _hmc_transition(path, step_sizes, num_leapfrog_steps), start.sample((num_chains,)), betas)


@torch.no_grad()
def reverse_ais_log_evidence(
    log_joint: LogDensity,
    start: Distribution,
    posterior: Float[Tensor, "chains batch dim"],
    *,
    num_temperatures: int = 100,
    num_leapfrog_steps: int = 10,
) -> ReverseAISEstimate:
    """An upper bound of log p(x) by reverse AIS, from exact samples z ~ p(z|x).

    They are available where the posterior is known, or where (x, z) was sampled from the model: then z ~ p(z|x).
    """
    betas = sigmoid_inverse_temperatures(num_temperatures)
    path = geometric_path(start.log_prob, log_joint)
    step_sizes = tune_step_sizes(
        path, start.sample((min(len(posterior), 8),)), betas, num_leapfrog_steps=num_leapfrog_steps
    )
    return reverse_anneal(path, _hmc_transition(path, step_sizes, num_leapfrog_steps), posterior, betas)


def tune_step_sizes(
    path: DensityPath,
    start: Float[Tensor, "chains batch dim"],
    betas: Float[Tensor, " betas"],
    *,
    num_leapfrog_steps: int,
    target_acceptance: float = 0.65,
    initial_step_size: float = 0.1,
) -> Float[Tensor, "steps batch"]:
    """A leapfrog step size for each β and row, adapted on separate chains to the target acceptance rate.

    Sizes adapted on the weighted chains themselves would bias the weights.
    """
    size = torch.full(start.shape[1:-1], initial_step_size, dtype=start.dtype, device=start.device)
    x, sizes = start, []
    for beta in betas[1:].tolist():
        x, acceptance = hmc_step(
            partial(_density_at, path, beta),
            x,
            step_size=size.expand(x.shape[:-1]),
            num_leapfrog_steps=num_leapfrog_steps,
        )
        size = size * (0.5 * (acceptance.mean(0) - target_acceptance)).exp()
        sizes.append(size)
    return torch.stack(sizes)


@torch.no_grad()
def ais_log_partition(
    rbm: RBM, *, num_chains: int = 100, num_temperatures: int = 1_000, base: Float[Tensor, " visible"] | None = None
) -> AISEstimate:
    """An estimate of log Z of a restricted Boltzmann machine (Salakhutdinov and Murray 2008).

        f_β(v) = exp(((1 − β) b₀ + β b)·v) ∏_j (1 + exp(β (c_j + W_j v)))

    The path starts at independent units of bias b₀ = `base`, by default b; their log Z₀ = H log 2 + Σ_i softplus(b₀_i)
    is included in the weights.
    """
    base = rbm.visible_bias if base is None else base
    hidden, visible = rbm.weight.shape

    def bias(beta: float) -> Tensor:
        return (1 - beta) * base + beta * rbm.visible_bias

    def path(v: Tensor, beta: float) -> Tensor:
        return v @ bias(beta) + softplus(beta * rbm.hidden_logits(v)).sum(-1)

    def transition(v: Tensor, beta: float, _index: int) -> Tensor:
        h = (beta * rbm.hidden_logits(v)).sigmoid().bernoulli()
        return (bias(beta) + beta * h @ rbm.weight).sigmoid().bernoulli()

    start = base.sigmoid().expand(num_chains, visible).bernoulli()
    annealed = anneal(path, transition, start, torch.linspace(0, 1, num_temperatures + 1))
    return AISEstimate(annealed.log_weights + hidden * log(2) + softplus(base).sum())


def _density_at(path: DensityPath, beta: float, x: Tensor) -> Tensor:
    return path(x, beta)


def _hmc_transition(path: DensityPath, step_sizes: Tensor, num_leapfrog_steps: int) -> Transition:
    def transition(x: Tensor, beta: float, index: int) -> Tensor:
        sizes = step_sizes[index].expand(x.shape[:-1])
        density = partial(_density_at, path, beta)
        return hmc_step(density, x, step_size=sizes, num_leapfrog_steps=num_leapfrog_steps).state

    return transition


def _check_betas(betas: Tensor) -> None:
    if len(betas) < 2 or betas[0] != 0 or betas[-1] != 1 or bool((betas.diff() < 0).any()):
        raise ValueError(
            f"betas must increase from 0 to 1; got {betas.tolist()[:5]} … {float(betas[-1]) if len(betas) else ''}"
        )
