"""µ-law companding and 8-bit quantisation of waves (ITU-T G.711; book sec. 10.1.2).

The standard approximates the curve by eight line segments on each side; this module uses the smooth curve.
"""

from math import expm1, log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_indices

MU = 255
"""µ of the standard."""
LEVELS = 256
"""Number of tokens: one byte."""


def compand(wave: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The curve y = sign(x) ln(1 + µ|x|) / ln(1 + µ): from [−1, 1] to [−1, 1], steepest at 0."""
    is_checked = not torch.compiler.is_compiling()  # values are unknown while a compiler or an exporter traces
    if is_checked and not bool((wave.abs() <= 1).all()):
        raise ValueError(f"wave must lie in [−1, 1]; got {float(wave.min()):.6g} to {float(wave.max()):.6g}")
    return wave.sign() * (MU * wave.abs()).log1p() / log(1 + MU)


def expand(companded: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The inverse of `compand`: x = sign(y) ((1 + µ)^|y| − 1) / µ."""
    return companded.sign() * (companded.abs() * log(1 + MU)).expm1() / MU


def mu_law_encode(wave: Float[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Quantise each companded sample to a token from 0 to 255."""
    return ((compand(wave) + 1) * (LEVELS / 2)).long().clamp_max(LEVELS - 1)  # 1 belongs to the last step


def companded_levels(tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The midpoint of each token's quantisation step in [−1, 1], still companded."""
    check_indices(LEVELS, tokens=tokens)
    return (tokens.to(torch.get_default_dtype()) + 0.5) / (LEVELS / 2) - 1


def mu_law_decode(tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The wave of these tokens, up to an error of at most `quantisation_error_bound`."""
    return expand(companded_levels(tokens))


def quantisation_error_bound(wave: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """|x̂ − x| ≤ (1/µ + |x|) ((1 + µ)^δ − 1), where δ = 1/256 is half a step: roughly proportional to |x|.

    1/µ + x is exponential in y, so changing y by at most δ multiplies it by at most (1 + µ)^δ; 0 is the edge of a
    step, so x and x̂ have the same sign.
    """
    return (1 / MU + wave.abs()) * expm1(log(1 + MU) / LEVELS)
