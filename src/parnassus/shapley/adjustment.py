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
UNDERSTATED = 1.0, 2.0
"""Squared errors are made larger, if anything, and not beyond what is ever found where there are enough pairs."""


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
    These are made larger by as much as they are `understated`. Where learning promises little, as for games without
    rhyme or reason, or would cost more than asking, it is `regressed`.
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
    roughness = ROUGHNESS[doubts.index(min(doubts))]
    found = learned(pairs, odd, roughness, most)
    rest = pairs.chance * found.told + (1 - pairs.chance) * pairs.free * found.left_out
    each_set = zip(some.centred, some.pull, strict=True) if several else [(pairs.centred, pairs.pull)]
    more = [understated(Pairs(z, pull, pairs.size, pairs.chance), roughness, most) for z, pull in each_set]
    errors = (sum(more) / len(more)) ** 0.5 * pairs.errors(found.left_out)
    return Estimate(found.values + rest @ pairs.pull + equal[..., None], errors)


class Learned(NamedTuple):
    """The Shapley values of what was learned, and what it misses: of each pair as told, and as if it had not been."""

    values: Float[Tensor, "*games players"]
    told: Float[Tensor, "*games pairs"]
    left_out: Float[Tensor, "*games pairs"]


def learned(pairs: Pairs, odd: Float[Tensor, "*games pairs"], roughness: float, most: int) -> Learned:
    """Kriging of the odd part of games: g = Σ_T a_T (k(·, T) − k(·, not T)), a = K⁻¹ odd.

    Left out, a pair is missed by a_T / (K⁻¹)_TT. Pairs beyond the first `most` are only foretold.
    """
    kernel = covariance(pairs, roughness, most)
    inverse, precision = inverted(kernel)
    count = kernel.shape[-1]
    weights = odd[..., :count] @ inverse
    told = odd - weights @ kernel.mT
    alone = weights / (precision if precision.ndim == 1 else precision[..., None, :])
    values = weights @ covariance_with_values(pairs, roughness)[..., :count, :]
    return Learned(values, told, torch.cat([alone, told[..., count:]], -1))


def understated(pairs: Pairs, roughness: float, most: int) -> float:
    """How much larger squared errors of `adjusted` are than it says, if games are what it takes them for.

    All that it does is linear in worths, φ̂ = odd · L, so for a Gaussian process both are known: E(φ̂ − φ)² =
    LᵀKL − 2 Lᵀc + Var φ, where c = Cov(odd, φ), and the mean of what is said. Neighbours are missed together: an
    estimate that adds squares does not see it (as in k-fold cross-validation, Bengio and Grandvalet 2004).
    """
    count, players = pairs.centred.shape
    kernel, with_values = covariance(pairs, roughness, count), covariance_with_values(pairs, roughness)
    known = kernel[:, :most]
    inverse, precision = inverted(known)
    below = torch.zeros(max(0, count - most), count).to(kernel)  # pairs that are not learned from
    told = torch.eye(count).to(kernel) - torch.cat([inverse @ known.mT, below])
    left_out = torch.cat([torch.cat([inverse / precision, below[:, :most]]), told[:, most:]], 1)
    rest = pairs.chance * told + (1 - pairs.chance) * pairs.free * left_out
    weights = torch.cat([inverse @ with_values[:most], below.new_zeros(len(below), players)]) + rest @ pairs.pull
    having, lacking = values_by_size(players, roughness).to(kernel)
    in_truth = (weights * (kernel @ weights - 2 * with_values)).sum() + (having[1:] - lacking[:-1]).sum()
    doubt = (1 - pairs.chance) * pairs.free * (left_out * (kernel @ left_out)).sum(0)
    return float((in_truth / (doubt @ pairs.pull.square()).sum()).clamp(*UNDERSTATED))


def covariance(pairs: Pairs, roughness: float, most: int) -> Float[Tensor, "*sets pairs known"]:
    """Of the odd parts of a game at all pairs and the first `most`, given that g(all) = g(∅); a line is left free."""
    players = pairs.centred.shape[-1]
    present = pairs.centred + pairs.size[:, None] / players
    apart = pairs.size[:, None] + pairs.size[:most] - 2 * present @ present[..., :most, :].mT  # |S Δ T|
    powers = exp(-roughness / players) ** torch.arange(players + 1).to(present)
    antisymmetric = powers - powers.flip(0)
    ends = antisymmetric.flip(0)[pairs.size.long()] / antisymmetric[0].sqrt()
    kernel = antisymmetric[apart.round().long()] - ends[:, None] * ends[:most]
    return kernel + LINEAR * pairs.centred @ pairs.centred[..., :most, :].mT


def inverted(
    kernel: Float[Tensor, "*sets pairs known"],
) -> tuple[Float[Tensor, "*sets known known"], Float[Tensor, "*sets known"]]:
    """The inverse for the pairs that are known, and its diagonal."""
    count = kernel.shape[-1]
    own = kernel[..., :count, :] + JITTER * torch.eye(count).to(kernel)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(own))
    return inverse, inverse.diagonal(dim1=-2, dim2=-1)


def covariance_with_values(pairs: Pairs, roughness: float) -> Float[Tensor, "*sets pairs players"]:
    """Cov(odd, φ): the Shapley values of k(·, T) − k(·, not T) for each pair T."""
    having, lacking = values_by_size(pairs.centred.shape[-1], roughness).to(pairs.centred)[:, pairs.size.long()]
    return torch.where(pairs.centred > 0, having[:, None], lacking[:, None])


def values_by_size(players: int, roughness: float) -> Float[Tensor, "2 sizes"]:
    """The same for those in T and those not, by the size of T from 0 to M."""
    size = torch.arange(players + 1).double()
    twice = 2 * product_values(players, exp(-roughness / players))
    mean = (size * twice[0] + (players - size) * twice[1]) / players
    return twice - mean + LINEAR * (torch.tensor([[1.0], [0.0]]) - size / players)


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
