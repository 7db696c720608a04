"""Waves as tokens: µ-law companding, which spends its 256 steps where soft sounds are (ITU-T G.711; book sec. 10.1.2).

The standard draws the curve by eight straight pieces on each side; here it is the smooth curve that these follow.
"""

from math import expm1, log

import torch
from jaxtyping import Float, Int
from torch import Tensor

MU = 255
"""The µ of the standard."""
LEVELS = 256
"""How many tokens there are: one byte."""


def compand(wave: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The curve y = sign(x) ln(1 + µ|x|) / ln(1 + µ): from [−1, 1] to [−1, 1], steep at 0."""
    if not bool((wave.abs() <= 1).all()):
        raise ValueError(f"a wave must lie in [−1, 1]; got {float(wave.min()):.6g} to {float(wave.max()):.6g}")
    return wave.sign() * (MU * wave.abs()).log1p() / log(1 + MU)


def expand(companded: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The inverse of `compand`: x = sign(y) ((1 + µ)^|y| − 1) / µ."""
    return companded.sign() * (companded.abs() * log(1 + MU)).expm1() / MU


def to_tokens(wave: Float[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """The number, from 0 to 255, of the step in which each companded sample lies."""
    return ((compand(wave) + 1) * (LEVELS / 2)).long().clamp_max(LEVELS - 1)  # 1 itself belongs to the last step


def levels(tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The middle of each token's step in [−1, 1], still companded: numbers that a network can take."""
    if bool(((tokens < 0) | (tokens >= LEVELS)).any()):
        raise ValueError(f"tokens are numbers from 0 to {LEVELS - 1}; got {int(tokens.min())} to {int(tokens.max())}")
    return (tokens.to(torch.get_default_dtype()) + 0.5) / (LEVELS / 2) - 1


def from_tokens(tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The wave again; it is off by at most `error_bound`."""
    return expand(levels(tokens))


def error_bound(wave: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """|x̂ − x| ≤ (1/µ + |x|) ((1 + µ)^δ − 1), δ = 1/256 half a step: a share of x, and little for soft sounds.

    Since 1/µ + x is exponential in y, moving y by at most δ multiplies it by at most (1 + µ)^δ; 0 is the edge of a
    step, so x and x̂ are of one sign.
    """
    return (1 / MU + wave.abs()) * expm1(log(1 + MU) / LEVELS)
