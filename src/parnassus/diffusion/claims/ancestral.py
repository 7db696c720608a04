"""Claims about ancestral sampling, with an exact denoiser (book sec. 13.2.4)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_most, claim, close, erratum
from parnassus.diffusion.claims.truths import two_modes
from parnassus.diffusion.process import posterior_variance
from parnassus.diffusion.samplers import ddpm
from parnassus.diffusion.schedules import linear_schedule


@claim("B13.2.4-7")
def ancestral_sampling_reproduces_a_mixture() -> Evidence:
    """½ N(−2, ¼) + ½ N(2, ¼) comes back: E|x| = 2, Var|x| = ¼ and half the samples on either side."""
    schedule, oracle = linear_schedule(1_000), two_modes(linear_schedule(1_000))
    torch.manual_seed(0)
    x = ddpm(oracle, schedule, torch.randn(5_000, 1, dtype=torch.float64))
    return all_of(
        centre=close(x.abs().mean(), 2.0, atol=0.02),
        spread=close(x.abs().var(), 0.25, atol=0.02),
        share=close((x > 0).double().mean(), 0.5, atol=0.025),
    )


@erratum(
    "B13.2.4-7",
    printed="(x_t − (1 − α_t)/√(1 − α_t) ε)/√α_t + Σ_q(t) z",
    right="(x_t − (1 − α_t)/√(1 − ᾱ_t) ε)/√α_t + Σ_q(t)^½ z",
)
def the_sampling_algorithm_lacks_a_bar_and_a_root() -> Correction:
    """As printed, line 4 of the algorithm collapses every mode to a point (book alg. 13.2)."""
    return Correction(
        printed=close(_spread_of_samples(bar=False, root=False), 0.25, atol=0.02),
        corrected=close(_spread_of_samples(bar=True, root=True), 0.25, atol=0.02),
    )


@claim("B13.2.4-7")
def each_of_the_two_misprints_spoils_the_samples_alone() -> Evidence:
    """The missing bar or the missing root alone leaves less than a fifth of the true variance of each mode."""
    return all_of(
        without_bar=at_most(_spread_of_samples(bar=False, root=True), 0.05),
        without_root=at_most(_spread_of_samples(bar=True, root=False), 0.05),
    )


def _spread_of_samples(*, bar: bool, root: bool) -> Tensor:
    """Var|x_0| after the sampling loop written out, with or without the two corrections."""
    torch.manual_seed(0)
    schedule = linear_schedule(250, low=4e-4, high=0.08)
    oracle, variance = two_modes(schedule), posterior_variance(schedule)
    x = torch.randn(4_000, 1, dtype=torch.float64)
    for step in reversed(range(250)):
        alpha = schedule.alpha[step]
        kept = schedule.alpha_bar[step] if bar else alpha
        mean = (x - (1 - alpha) / (1 - kept).sqrt() * oracle(x, torch.full((len(x),), step))) / alpha.sqrt()
        x = mean + (variance[step].sqrt() if root else variance[step]) * torch.randn_like(x)
    return x.abs().var()
