"""Score matching objectives, one value per example (book secs. 13.2.6-13.2.8).

A `ScoreFunction` maps a batch x to vectors s(x); a `NoiseConditionalScore` takes the index of the noise level as well.
"""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.diffusion.chain.forward_process import extract
from parnassus.diffusion.scores.vector_fields import divergence, hutchinson_divergence, squared_norm
from parnassus.errors import check_positive

ScoreFunction: TypeAlias = Callable[[Tensor], Tensor]
NoiseConditionalScore: TypeAlias = Callable[[Tensor, Tensor], Tensor]
LevelWeight: TypeAlias = Callable[[Tensor], Tensor]
"""Noise levels σ_t in, weights λ(t) > 0 out."""


def explicit_score_matching(
    score: ScoreFunction, truth: ScoreFunction, x: Float[Tensor, "batch *event"]
) -> Float[Tensor, " batch"]:
    """‖s(x) − ∇ log p(x)‖² for a known score, the reference for the others (book eq. 13.84)."""
    return squared_norm(score(x) - truth(x))


def implicit_score_matching(score: ScoreFunction, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """Implicit score matching, from integration by parts: needs no true score (book sec. 13.2.8).

        tr ∇s(x) + ½ ‖s(x)‖²                                                      (Hyvärinen 2005)
        E_p[implicit] = ½ E_p[explicit] − ½ E_p ‖∇ log p‖²

    if p s vanishes at infinity. The last term does not depend on s. The trace is exact.
    """
    value, trace = divergence(score, x)
    return trace + squared_norm(value) / 2


def sliced_score_matching(
    score: ScoreFunction, x: Float[Tensor, "batch *event"], probe: Float[Tensor, "batch *event"]
) -> Float[Tensor, " batch"]:
    """Sliced score matching vᵀ ∇s(x) v + ½ ‖s(x)‖², random v with E vvᵀ = I (Song et al. 2019)."""
    value, trace = hutchinson_divergence(score, x, probe)
    return trace + squared_norm(value) / 2


def denoising_score_matching(
    score: ScoreFunction, x: Float[Tensor, "batch *event"], noise: Float[Tensor, "batch *event"], *, std: float
) -> Float[Tensor, " batch"]:
    """‖s(x̃) − (x − x̃)/σ²‖² at the noisy x̃ = x + σ ε (book eqs. 13.85-13.86, corrected; Vincent 2011).

        E[denoising] = E_{p_σ}[explicit] + a constant

    for the noisy density p_σ, whose score is the minimiser. With the clean x in s, as printed, it would be 0.
    """
    check_positive(std=std)
    return squared_norm(score(x + std * noise) + noise / std)


def variance_weight(levels: Float[Tensor, " levels"]) -> Float[Tensor, " levels"]:
    """λ(t) = σ_t², which balances the levels as ‖∇ log p_σ‖ ∝ 1/σ (Song and Ermon 2019)."""
    return levels.square()


def multiscale_score_matching(
    score: NoiseConditionalScore,
    levels: Float[Tensor, " levels"],
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
    *,
    weight: LevelWeight = variance_weight,
) -> Float[Tensor, " batch"]:
    """λ(t) ‖s(x_t, t) − (x − x_t)/σ_t²‖² at x_t = x + σ_t ε, one network for all levels (book eq. 13.89).

    For uniform t its mean is 1/T times the sum over levels. The book prints the clean x in s; it must be x_t.
    """
    std = extract(levels, t, x)
    error = squared_norm(score(x + std * noise, t) + noise / std)
    return extract(weight(levels), t, error) * error


class ScoreMatching(nn.Module):
    """A score network trained by an objective `matching(score, x)`, with one value per example."""

    def __init__(self, score: nn.Module, matching: Callable[[ScoreFunction, Tensor], Tensor]) -> None:
        super().__init__()
        self.score = score
        self.matching = matching

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """The mean objective over the batch."""
        return self.matching(self.score, x).mean()
