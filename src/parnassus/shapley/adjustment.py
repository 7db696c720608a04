"""Kernel SHAP that learns the game from what it asked, and corrects what it learned (Witter, Musco et al. 2025).

A cheap model g of the game has Shapley values of its own, known exactly; what is left to estimate is those of v − g,
which are smaller. Here g is kriging: a Gaussian process over coalitions with the kernel ρ^|S Δ T|, to which every order
of interaction contributes, the less the higher it is. Its Shapley values are an integral in one variable, and one
inverse serves all games that share their coalitions: all rows, all outputs.
"""

from math import exp
from typing import NamedTuple

import torch
from jaxtyping import Float
from numpy.polynomial.legendre import leggauss
from torch import Tensor

from parnassus.shapley.coalitions import Asked
from parnassus.shapley.kernel_shap import Pairs, regressed
from parnassus.shapley.values import Estimate

ROUGHNESS = (1.0, 2.0, 4.0, 8.0, 32.0)
"""−M log ρ: with the first only neighbours of third order matter, with the last nothing is learned beyond a line."""
AT_MOST, FOR_ONE = 1024, 60
"""Pairs that are learned from: in all, and of each set for one game. Inverses should not cost more than asking did."""
LINEAR, JITTER = 100.0, 1e-6
"""Variance of the part that is a sum over players, which is left to the data; and what keeps inverses finite."""

WORTH_IT = 0.8
"""The variance must be promised to fall to this share of what it was: the least of several promises is too good."""


def adjusted(
    asked: Asked,
    worth: Float[Tensor, "*games count"],
    nobody: Float[Tensor, "*games"],
    everybody: Float[Tensor, "*games"],
) -> Estimate:
    """φ(g) and what `regressed` finds of v − g, with Σ_j φ_j = v(all) − v(∅) kept exactly.

    g is learned from the pairs themselves, and knows those too well. So a pair that was asked with chance p stands for
    itself, where g was told, and for 1/p − 1 pairs that were not asked, where g errs as it does on a pair left out of
    the learning: v − g counts p of the first and 1 − p of the second, and standard errors come from the second alone.
    Where that promises little, as for games without rhyme or reason, or would cost more than asking, it is `regressed`.
    """
    plain = regressed(asked, worth, nobody, everybody)
    players = asked.coalitions.shape[-1]
    several = asked.coalitions.ndim > 2
    alone = not several or len(asked.coalitions) == 1
    most = AT_MOST if alone else min(AT_MOST, int(FOR_ONE * worth.shape[1] ** 0.5))
    if players == 1 or bool((asked.chance == 1).all()) or len(asked.chance) > 4 * most:
        return plain
    pairs, equal = Pairs.of(asked, worth), (everybody - nobody) / players
    odd = pairs.odd(worth, equal)
    few = slice(0, 1 + 256 // len(odd[0, 0])) if several else slice(None)  # sets that decide how rough the games are
    some = Pairs(pairs.centred[few], pairs.pull[few], pairs.size, pairs.chance)
    doubts = [float(some.errors(learned(some, odd[few], rough, most).left_out).square().sum()) for rough in ROUGHNESS]
    if not min(doubts) < WORTH_IT * float(plain.errors[few].square().sum()):
        return plain
    found = learned(pairs, odd, ROUGHNESS[doubts.index(min(doubts))], most)
    rest = pairs.chance * found.told + (1 - pairs.chance) * pairs.free * found.left_out
    return Estimate(found.values + rest @ pairs.pull + equal[..., None], pairs.errors(found.left_out))


class Learned(NamedTuple):
    """The Shapley values of what was learned, and what it misses: of each pair as told, and as if it had not been."""

    values: Float[Tensor, "*games players"]
    told: Float[Tensor, "*games pairs"]
    left_out: Float[Tensor, "*games pairs"]


def learned(pairs: Pairs, odd: Float[Tensor, "*games pairs"], roughness: float, most: int) -> Learned:
    """Kriging of the odd part of games: g = Σ_T a_T (k(·, T) − k(·, not T)), a = K⁻¹ odd.

    Left out, a pair is missed by a_T / (K⁻¹)_TT. Pairs beyond the first `most` are only foretold.
    """
    players = pairs.centred.shape[-1]
    rho = exp(-roughness / players)
    present = pairs.centred + pairs.size[:, None] / players
    known, line = present[..., :most, :], pairs.centred[..., :most, :]
    apart = pairs.size[:, None] + pairs.size[:most] - 2 * present @ known.mT  # |S Δ T|
    powers = rho ** torch.arange(players + 1).to(odd)
    antisymmetric = powers - powers.flip(0)
    ends = antisymmetric.flip(0)[pairs.size.long()] / antisymmetric[0].sqrt()
    kernel = antisymmetric[apart.round().long()] - ends[:, None] * ends[:most]  # given that g(all) = g(∅)
    kernel = kernel + LINEAR * pairs.centred @ line.mT
    count = known.shape[-2]
    own = kernel[..., :count, :] + JITTER * torch.eye(count).to(odd)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(own))
    weights = odd[..., :count] @ inverse
    told = odd - weights @ kernel.mT
    precision = inverse.diagonal(dim1=-2, dim2=-1)
    alone = weights / (precision if precision.ndim == 1 else precision[..., None, :])
    having, lacking = product_values(players, rho).to(odd)[:, pairs.size[:most].long()]
    each = 2 * (having[:, None] * known + lacking[:, None] * (1 - known))
    each = each - each.mean(-1, keepdim=True) + LINEAR * line
    return Learned(weights @ each, told, torch.cat([alone, told[..., count:]], -1))


def product_values(players: int, rho: float) -> Float[Tensor, "2 sizes"]:
    """Shapley values of the game S ↦ ρ^|S Δ T| for those in T and those not, by the size of T from 0 to M.

    It is a product over players, of which one in T gives 1 if present and ρ if not. With everyone present with chance
    t, i in T gets (1 − ρ) ∫ (t + (1−t) ρ)^{|T|−1} (tρ + 1 − t)^{M−|T|} dt over t from 0 to 1 (Owen 1972).
    """
    nodes, weights = (torch.from_numpy(each) for each in leggauss(players // 2 + 1))
    chance, weight = (nodes + 1) / 2, weights / 2
    inside, outside = chance + (1 - chance) * rho, chance * rho + 1 - chance
    size = torch.arange(players + 1)[:, None]
    having = inside ** (size - 1).clamp(min=0) * outside ** (players - size) @ weight
    lacking = inside**size * outside ** (players - size - 1).clamp(min=0) @ weight
    return (1 - rho) * torch.stack([having, -lacking])
