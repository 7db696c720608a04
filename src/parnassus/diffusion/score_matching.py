"""Score matching: ways to learn ∇ log p, each one number for each example (book secs. 13.2.6-13.2.8).

A `Score` maps a batch x to a batch of vectors s(x); a `LevelledScore` is told the number of the noise level as well.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.fields import divergence, probed_divergence, squared_length
from parnassus.diffusion.process import spread

Score: TypeAlias = Callable[[Tensor], Tensor]
LevelledScore: TypeAlias = Callable[[Tensor, Tensor], Tensor]
LevelWeight: TypeAlias = Callable[[Tensor], Tensor]
"""Noise levels σ_t in, weights λ(t) > 0 out."""


def explicit_matching(score: Score, truth: Score, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖s(x) − ∇ log p(x)‖², where the true score is known: the yardstick of the others (book eq. 13.84)."""
    return squared_length(score(x) - truth(x))


def implicit_matching(score: Score, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """What is left of `explicit_matching` by parts: it needs examples of p and no true score (book sec. 13.2.8).

        tr ∇s(x) + ½ ‖s(x)‖²                                                      (Hyvärinen 2005)
        E_p[implicit] = ½ E_p[explicit] − ½ E_p ‖∇ log p‖²

    where p s vanishes far out. The last term does not depend on s. The trace is exact.
    """
    value, trace = divergence(score, x)
    return trace + squared_length(value) / 2


def sliced_matching(
    score: Score, x: Float[Tensor, "batch *event"], probe: Float[Tensor, "batch *event"]
) -> Float[Tensor, " batch"]:
    """The sum vᵀ ∇s(x) v + ½ ‖s(x)‖²: `implicit_matching` with a random probe, E vvᵀ = I (Song et al. 2019)."""
    value, trace = probed_divergence(score, x, probe)
    return trace + squared_length(value) / 2


def denoising_matching(
    score: Score, x: Float[Tensor, "batch *event"], noise: Float[Tensor, "batch *event"], *, std: float
) -> Float[Tensor, " batch"]:
    """‖s(x̃) − (x − x̃)/σ²‖² at the noisy x̃ = x + σ ε (book eqs. 13.85-13.86, put right; Vincent 2011).

        E[denoising] = E_{p_σ}[explicit] + a constant

    of the noisy density p_σ, whose score is what it finds. With the clean x in s, as printed, it would find 0.
    """
    if not std > 0:
        raise ValueError(f"the noise must have a positive deviation; got std={std}")
    return squared_length(score(x + std * noise) + noise / std)


def variance_weight(levels: Float[Tensor, " levels"]) -> Float[Tensor, " levels"]:
    """λ(t) = σ_t²: each level then counts about the same, for ‖∇ log p_σ‖ goes as 1/σ (Song and Ermon 2019)."""
    return levels.square()


def matching_at_levels(
    score: LevelledScore,
    levels: Float[Tensor, " levels"],
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
    *,
    weight: LevelWeight = variance_weight,
) -> Float[Tensor, " batch"]:
    """λ(t) ‖s(x_t, t) − (x − x_t)/σ_t²‖² at x_t = x + σ_t ε, with one network for all levels (book eq. 13.89).

    With t uniform its mean is 1/T times the sum over levels. The book prints the clean x in s; it must be x_t.
    """
    std = spread(levels, t, x)
    error = squared_length(score(x + std * noise, t) + noise / std)
    return spread(weight(levels), t, error) * error
