"""Claims about ancestral sampling, with an exact denoiser (book sec. 13.2.4)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, less_equal
from parnassus.diffusion.chain.gaussian_posterior import posterior_variance
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.claims.exact_expectations import two_modes
from parnassus.diffusion.samplers.ddpm import ddpm


@claim("B13.2.4-7")
def ancestral_sampling_reproduces_a_mixture() -> Evidence:
    """Samples of ½ N(−2, ¼) + ½ N(2, ¼) have E|x| = 2, Var|x| = ¼ and half of them are positive."""
    schedule, oracle = linear_schedule(1_000), two_modes(linear_schedule(1_000))
    torch.manual_seed(0)
    x = ddpm(oracle, schedule, torch.randn(5_000, 1, dtype=torch.float64))
    return all_of(
        mean=close(x.abs().mean(), 2.0, atol=0.02),
        variance=close(x.abs().var(), 0.25, atol=0.02),
        positive_fraction=close((x > 0).double().mean(), 0.5, atol=0.025),
    )


@erratum(
    "B13.2.4-7",
    printed="(x_t − (1 − α_t)/√(1 − α_t) ε)/√α_t + Σ_q(t) z",
    right="(x_t − (1 − α_t)/√(1 − ᾱ_t) ε)/√α_t + Σ_q(t)^½ z",
)
def the_sampling_algorithm_needs_alpha_bar_and_a_standard_deviation() -> Correction:
    """As printed, line 4 of the algorithm collapses each mode to a point (book alg. 13.2)."""
    return Correction(
        printed=close(_variance_of_samples(bar=False, root=False), 0.25, atol=0.02),
        corrected=close(_variance_of_samples(bar=True, root=True), 0.25, atol=0.02),
    )


@claim("B13.2.4-7")
def each_misprint_alone_reduces_the_variance_of_samples() -> Evidence:
    """Either misprint alone reduces the variance of each mode to less than a fifth of the true one."""
    return all_of(
        alpha_for_alpha_bar=less_equal(_variance_of_samples(bar=False, root=True), 0.05),
        variance_for_std=less_equal(_variance_of_samples(bar=True, root=False), 0.05),
    )


def _variance_of_samples(*, bar: bool, root: bool) -> Tensor:
    """Var|x_0| of the sampling loop with or without the two corrections."""
    torch.manual_seed(0)
    schedule = linear_schedule(250, low=4e-4, high=0.08)
    oracle, variance = two_modes(schedule), posterior_variance(schedule)
    x = torch.randn(4_000, 1, dtype=torch.float64)
    for step in reversed(range(250)):
        alpha = schedule.alpha[step]
        signal = schedule.alpha_bar[step] if bar else alpha
        mean = (x - (1 - alpha) / (1 - signal).sqrt() * oracle(x, torch.full((len(x),), step))) / alpha.sqrt()
        x = mean + (variance[step].sqrt() if root else variance[step]) * torch.randn_like(x)
    return x.abs().var()
