"""Annealed importance sampling: log Z and log p(x) by a slow walk from a known density (Neal 2001; book sec. 6.1)."""

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

from parnassus.latent.hmc import LogDensity, hmc_step
from parnassus.latent.rbm import RBM
from parnassus.probability.importance import effective_sample_size, log_mean_exp

Path: TypeAlias = Callable[[Tensor, float], Tensor]
"""log f_t(x) for states x and a time t in [0, 1]: from a density one can draw from to the one that is wanted."""
Transition: TypeAlias = Callable[[Tensor, float, int], Tensor]
"""A draw that leaves f_t invariant, from a state, the time t and its number on the way."""


@dataclass(frozen=True)
class Annealed:
    """Chains with the logarithms of weights whose mean is Z₁/Z₀; more axes are further problems, one each.

    By Jensen's inequality `estimate` lies below the truth on average; it is too high by c only with a probability
    of at most e⁻ᶜ. So it is a stochastic lower bound, better with more times and more chains.
    """

    log_weights: Float[Tensor, "chains *batch"]

    @property
    def estimate(self) -> Float[Tensor, "*batch"]:
        """The logarithm of (1/n) Σ_i w_i."""
        return log_mean_exp(self.log_weights, 0)

    @property
    def effective(self) -> Float[Tensor, "*batch"]:
        """(Σ w)² / Σ w²: how many equally weighted chains these are worth, from 1 to all."""
        return effective_sample_size(self.log_weights, 0)

    @property
    def spread(self) -> Float[Tensor, "*batch"]:
        """The standard deviation of `estimate` to first order, √(1/ESS − 1/n); blind to what no chain has seen."""
        return (1 / self.effective - 1 / len(self.log_weights)).clamp(min=0).sqrt()


@dataclass(frozen=True)
class ReverseAnnealed(Annealed):
    """Chains walked back from draws of the wanted density: the weights of Z₀/Z₁, hence a stochastic upper bound."""

    @property
    def estimate(self) -> Float[Tensor, "*batch"]:
        """−log (1/n) Σ_i w_i."""
        return -log_mean_exp(self.log_weights, 0)


def sigmoid_times(count: int, *, steepness: float = 4.0) -> Float[Tensor, " times"]:
    """`count` + 1 times from 0 to 1, close together at both ends, where most densities change fastest."""
    if count < 1:
        raise ValueError(f"the way from 0 to 1 takes at least one step; got count={count}")
    ramp = torch.linspace(-steepness, steepness, count + 1, dtype=torch.float64).sigmoid()
    return (ramp - ramp[0]) / (ramp[-1] - ramp[0])


def geometric_path(log_start: LogDensity, log_target: LogDensity) -> Path:
    """The path log f_t = (1 − t) log f₀ + t log f₁."""

    def at(x: Tensor, t: float) -> Tensor:
        return (1 - t) * log_start(x) + t * log_target(x)

    return at


def anneal(
    path: Path, transition: Transition, start: Float[Tensor, "chains *rest"], times: Float[Tensor, " times"]
) -> Annealed:
    """Walk draws of f₀ to f₁ and weigh them by what each change of the density adds (Neal 2001).

    w = ∏_k f_{t_k}(x_{k−1}) / f_{t_{k−1}}(x_{k−1}),   x_k ~ T_{t_k}(x_{k−1}),   E[w] = Z₁ / Z₀
    """
    _require_times(times)
    x, log_weights = start, torch.zeros_like(path(start, 0.0))
    for number, (before, after) in enumerate(pairwise(times.tolist())):
        log_weights = log_weights + path(x, after) - path(x, before)
        x = transition(x, after, number)
    return Annealed(log_weights)


def reverse_anneal(
    path: Path, transition: Transition, end: Float[Tensor, "chains *rest"], times: Float[Tensor, " times"]
) -> ReverseAnnealed:
    """The same walk from exact draws of f₁ back to f₀, by transitions that are reversible (Grosse et al. 2015).

    E[∏_k f_{t_{k−1}}(x_{k−1}) / f_{t_k}(x_{k−1})] = Z₀ / Z₁
    """
    _require_times(times)
    x, log_weights = end, torch.zeros_like(path(end, 1.0))
    for number, (before, after) in reversed(list(enumerate(pairwise(times.tolist())))):
        x = transition(x, after, number)
        log_weights = log_weights + path(x, before) - path(x, after)
    return ReverseAnnealed(log_weights)


@torch.no_grad()
def annealed_evidence(
    log_joint: LogDensity, start: Distribution, *, chains: int = 16, times: int = 100, leaps: int = 10
) -> Annealed:
    """The evidence log p(x) = log ∫ p(x, z) dz from below, for all rows of a batch at once (Wu et al. 2017).

    `log_joint` takes codes (chains, batch, dim) to log p(x, z) (chains, batch); `start` is any normalised
    distribution of batch shape (batch,) over the codes: the prior, or better an encoder's q(z|x).
    """
    times_ = sigmoid_times(times)
    path = geometric_path(start.log_prob, log_joint)
    step_sizes = rehearsed_step_sizes(path, start.sample((min(chains, 8),)), times_, leaps=leaps)
    return anneal(path, _hmc(path, step_sizes, leaps), start.sample((chains,)), times_)


@torch.no_grad()
def reverse_annealed_evidence(
    log_joint: LogDensity,
    start: Distribution,
    posterior: Float[Tensor, "chains batch dim"],
    *,
    times: int = 100,
    leaps: int = 10,
) -> ReverseAnnealed:
    """The evidence log p(x) from above, by way of exact draws z ~ p(z|x).

    One has them where the posterior is known, or where x was itself drawn with its z from the model: then z is a draw
    of p(z|x).
    """
    times_ = sigmoid_times(times)
    path = geometric_path(start.log_prob, log_joint)
    step_sizes = rehearsed_step_sizes(path, start.sample((min(len(posterior), 8),)), times_, leaps=leaps)
    return reverse_anneal(path, _hmc(path, step_sizes, leaps), posterior, times_)


def rehearsed_step_sizes(
    path: Path,
    start: Float[Tensor, "chains batch dim"],
    times: Float[Tensor, " times"],
    *,
    leaps: int,
    target: float = 0.65,
    first: float = 0.1,
) -> Float[Tensor, "steps batch"]:
    """A leap size for each time and row, grown or shrunk on a walk of its own until about `target` is accepted.

    It is settled before the walk that counts: sizes that answered to the chains they move would bias the weights.
    """
    size = torch.full(start.shape[1:-1], first, dtype=start.dtype, device=start.device)
    x, sizes = start, []
    for t in times[1:].tolist():
        x, acceptance = hmc_step(partial(_at, path, t), x, step=size.expand(x.shape[:-1]), steps=leaps)
        size = size * (0.5 * (acceptance.mean(0) - target)).exp()
        sizes.append(size)
    return torch.stack(sizes)


@torch.no_grad()
def annealed_log_partition(
    rbm: RBM, *, chains: int = 100, times: int = 1_000, base: Float[Tensor, " visible"] | None = None
) -> Annealed:
    """The log Z of a Boltzmann machine too large to list (Salakhutdinov and Murray 2008).

        f_t(v) = exp(((1 − t) b₀ + t b)·v) ∏_j (1 + exp(t (c_j + W_j v)))

    From independent units of bias b₀ = `base` (b unless told), whose log Z₀ = H log 2 + Σ_i softplus(b₀_i) is in the
    weights already, to the machine.
    """
    base = rbm.visible_bias if base is None else base
    hidden, visible = rbm.weight.shape

    def bias(t: float) -> Tensor:
        return (1 - t) * base + t * rbm.visible_bias

    def path(v: Tensor, t: float) -> Tensor:
        return v @ bias(t) + softplus(t * rbm.hidden_input(v)).sum(-1)

    def transition(v: Tensor, t: float, _number: int) -> Tensor:
        h = (t * rbm.hidden_input(v)).sigmoid().bernoulli()
        return (bias(t) + t * h @ rbm.weight).sigmoid().bernoulli()

    start = base.sigmoid().expand(chains, visible).bernoulli()
    walked = anneal(path, transition, start, torch.linspace(0, 1, times + 1))
    return Annealed(walked.log_weights + hidden * log(2) + softplus(base).sum())


def _at(path: Path, t: float, x: Tensor) -> Tensor:
    return path(x, t)


def _hmc(path: Path, step_sizes: Tensor, leaps: int) -> Transition:
    def transition(x: Tensor, t: float, number: int) -> Tensor:
        sizes = step_sizes[number].expand(x.shape[:-1])
        return hmc_step(partial(_at, path, t), x, step=sizes, steps=leaps).state

    return transition


def _require_times(times: Tensor) -> None:
    if len(times) < 2 or times[0] != 0 or times[-1] != 1 or bool((times.diff() < 0).any()):
        raise ValueError(
            f"times must rise from 0 to 1; got {times.tolist()[:5]} … {float(times[-1]) if len(times) else ''}"
        )
