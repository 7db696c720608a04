"""Regression adjustment: Kernel SHAP on the residuals of a surrogate of the game (Witter, Musco et al. 2025).

A surrogate g of the game has Shapley values in closed form; only those of v − g, which is smaller, are estimated. Here
g is kriging: a Gaussian process over coalitions with the kernel ρ^|S Δ T|, in which interactions of every order have
variance, decreasing with the order. Its Shapley values are an integral in one variable, and one inverse serves all
games on the same coalitions: all rows, all outputs.
"""

from math import exp
from typing import NamedTuple

import torch
from jaxtyping import Float
from numpy.polynomial.legendre import leggauss
from torch import Tensor

from parnassus.shapley.estimators.coalition_sampling import CoalitionSample
from parnassus.shapley.estimators.estimate import ShapleyEstimate
from parnassus.shapley.estimators.kernel_shap import PairedRegression, weighted_regression

ROUGHNESS = (1.0, 2.0, 4.0, 8.0, 32.0)
"""Candidates of −M log ρ: from interactions up to third order to an almost linear game."""
MAX_PAIRS, MAX_PAIRS_SINGLE_GAME = 1024, 60
"""Pairs that the surrogate is fitted to: in total, and per set for one game; with more, inverses dominate the cost."""
LINEAR_VARIANCE, JITTER = 100.0, 1e-6
"""Prior variance of the additive part, practically uninformative; and a diagonal term that keeps inverses finite."""
MAX_VARIANCE_RATIO = 0.8
"""The surrogate is used if it reduces the estimated variance to this ratio; the minimum of several is optimistic."""
INFLATION_RANGE = 1.0, 2.0
"""Squared errors are never reduced, and not inflated beyond what occurs with enough pairs."""


def regression_adjustment(
    sample: CoalitionSample,
    worth: Float[Tensor, "*games count"],
    empty: Float[Tensor, "*games"],
    grand: Float[Tensor, "*games"],
) -> ShapleyEstimate:
    """φ(g) plus the `weighted_regression` of v − g; Σ_j φ_j = v(N) − v(∅) holds exactly.

    g is fitted to the sampled pairs, so its residuals there are too small. A pair of inclusion probability p represents
    itself, with its residual, and 1/p − 1 pairs outside the sample, with its leave-one-out residual: v − g is p times
    the first plus 1 − p times the second. Standard errors come from the second alone and are multiplied by the root of
    `variance_inflation`. If the surrogate hardly reduces the variance, as for unstructured games, or would cost more
    than the model, the result is that of `weighted_regression`.
    """
    plain = weighted_regression(sample, worth, empty, grand)
    players, probability = sample.coalitions.shape[-1], sample.inclusion_probability
    has_sets = sample.coalitions.ndim > 2
    is_single = not has_sets or len(sample.coalitions) == 1
    max_pairs = MAX_PAIRS if is_single else min(MAX_PAIRS, int(MAX_PAIRS_SINGLE_GAME * worth.shape[1] ** 0.5))
    if players == 1 or bool((probability == 1).all()) or len(probability) > 4 * max_pairs:
        return plain
    pairs, equal = PairedRegression.build(sample, worth), (grand - empty) / players
    odd = pairs.odd_part(worth, equal)
    few = slice(0, 1 + 256 // len(odd[0, 0])) if has_sets else slice(None)  # sets that select the roughness
    selection = PairedRegression(pairs.centred[few], pairs.influence[few], pairs.size, pairs.inclusion_probability)
    variances = [
        float(
            selection.standard_errors(fit_surrogate(selection, odd[few], candidate, max_pairs).loo_residuals)
            .square()
            .sum()
        )
        for candidate in ROUGHNESS
    ]
    if not min(variances) < MAX_VARIANCE_RATIO * float(plain.errors[few].square().sum()):
        return plain
    roughness = ROUGHNESS[variances.index(min(variances))]
    surrogate = fit_surrogate(pairs, odd, roughness, max_pairs)
    rest = _combined_residuals(pairs, surrogate.residuals, pairs.one_minus_leverage, surrogate.loo_residuals)
    each_set = (
        zip(selection.centred, selection.influence, strict=True) if has_sets else [(pairs.centred, pairs.influence)]
    )
    inflation = [
        variance_inflation(
            PairedRegression(centred, influence, pairs.size, pairs.inclusion_probability), roughness, max_pairs
        )
        for centred, influence in each_set
    ]
    errors = (sum(inflation) / len(inflation)) ** 0.5 * pairs.standard_errors(surrogate.loo_residuals)
    return ShapleyEstimate(surrogate.values + rest @ pairs.influence + equal[..., None], errors)


class Surrogate(NamedTuple):
    """Shapley values of a fitted surrogate, its residuals at each pair, and its leave-one-out residuals."""

    values: Float[Tensor, "*games players"]
    residuals: Float[Tensor, "*games pairs"]
    loo_residuals: Float[Tensor, "*games pairs"]


def fit_surrogate(
    pairs: PairedRegression, odd: Float[Tensor, "*games pairs"], roughness: float, max_pairs: int
) -> Surrogate:
    """Kriging of the odd part of games: g = Σ_T a_T (k(·, T) − k(·, not T)), a = K⁻¹ odd.

    The leave-one-out residual of a pair is a_T / (K⁻¹)_TT. Pairs beyond the first `max_pairs` are only predicted.
    """
    kernel = kriging_covariance(pairs, roughness, max_pairs)
    inverse, precision = inverse_with_diagonal(kernel)
    count = kernel.shape[-1]
    weights = odd[..., :count] @ inverse
    residuals = odd - weights @ kernel.mT
    loo = weights / (precision if precision.ndim == 1 else precision[..., None, :])
    values = weights @ covariance_with_shapley_values(pairs, roughness)[..., :count, :]
    return Surrogate(values, residuals, torch.cat([loo, residuals[..., count:]], -1))


def variance_inflation(pairs: PairedRegression, roughness: float, max_pairs: int) -> float:
    """Ratio of the mean squared error of `regression_adjustment` to the reported one, for games from the prior.

    The estimator is linear in worths, φ̂ = odd · L, so both are known: E(φ̂ − φ)² = LᵀKL − 2 Lᵀc + Var φ with
    c = Cov(odd, φ), and the mean of the reported squares. Residuals of neighbouring pairs are correlated, which a sum
    of squares ignores (as in k-fold cross-validation, Bengio and Grandvalet 2004).
    """
    count, players = pairs.centred.shape
    kernel = kriging_covariance(pairs, roughness, count)
    with_values = covariance_with_shapley_values(pairs, roughness)
    known = kernel[:, :max_pairs]
    inverse, precision = inverse_with_diagonal(known)
    below = torch.zeros(
        max(0, count - max_pairs), count, dtype=kernel.dtype, device=kernel.device
    )  # pairs outside the fit
    residuals = torch.eye(count, dtype=kernel.dtype, device=kernel.device) - torch.cat([inverse @ known.mT, below])
    loo = torch.cat([torch.cat([inverse / precision, below[:, :max_pairs]]), residuals[:, max_pairs:]], 1)
    rest = _combined_residuals(pairs, residuals, pairs.one_minus_leverage, loo)
    fit = torch.cat([inverse @ with_values[:max_pairs], below.new_zeros(len(below), players)])
    weights = fit + rest @ pairs.influence
    member, other = kernel_shapley_values(players, roughness).to(kernel)
    squared_error = (weights * (kernel @ weights - 2 * with_values)).sum() + (member[1:] - other[:-1]).sum()
    reported = (1 - pairs.inclusion_probability) * pairs.one_minus_leverage * (loo * (kernel @ loo)).sum(0)
    return float((squared_error / (reported @ pairs.influence.square()).sum()).clamp(*INFLATION_RANGE))


def _combined_residuals(pairs: PairedRegression, residuals: Tensor, one_minus_leverage: Tensor, loo: Tensor) -> Tensor:
    """Residuals times p plus leave-one-out residuals times 1 − p."""
    probability = pairs.inclusion_probability
    return probability * residuals + (1 - probability) * one_minus_leverage * loo


def kriging_covariance(pairs: PairedRegression, roughness: float, max_pairs: int) -> Float[Tensor, "*sets pairs known"]:
    """The covariance of the odd parts of a game at all pairs and at the first `max_pairs`, given g(N) = g(∅)."""
    players = pairs.centred.shape[-1]
    present = pairs.centred + pairs.size[:, None] / players
    distance = pairs.size[:, None] + pairs.size[:max_pairs] - 2 * present @ present[..., :max_pairs, :].mT  # |S Δ T|
    powers = exp(-roughness / players) ** torch.arange(players + 1, dtype=present.dtype, device=present.device)
    antisymmetric = powers - powers.flip(0)
    ends = antisymmetric.flip(0)[pairs.size.long()] / antisymmetric[0].sqrt()
    kernel = antisymmetric[distance.round().long()] - ends[:, None] * ends[:max_pairs]
    return kernel + LINEAR_VARIANCE * pairs.centred @ pairs.centred[..., :max_pairs, :].mT


def inverse_with_diagonal(
    kernel: Float[Tensor, "*sets pairs known"],
) -> tuple[Float[Tensor, "*sets known known"], Float[Tensor, "*sets known"]]:
    """The inverse for the fitted pairs, and its diagonal."""
    count = kernel.shape[-1]
    square = kernel[..., :count, :] + JITTER * torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(square))
    return inverse, inverse.diagonal(dim1=-2, dim2=-1)


def covariance_with_shapley_values(pairs: PairedRegression, roughness: float) -> Float[Tensor, "*sets pairs players"]:
    """Cov(odd, φ): the Shapley values of k(·, T) − k(·, not T) for each pair T."""
    member, other = kernel_shapley_values(pairs.centred.shape[-1], roughness).to(pairs.centred)[:, pairs.size.long()]
    return torch.where(pairs.centred > 0, member[:, None], other[:, None])


def kernel_shapley_values(players: int, roughness: float) -> Float[Tensor, "2 sizes"]:
    """Shapley values of k(·, T) − k(·, not T) for players in T and outside T, by the size of T from 0 to M."""
    size = torch.arange(players + 1).double()
    twice = 2 * product_game_values(players, exp(-roughness / players))
    mean = (size * twice[0] + (players - size) * twice[1]) / players
    return twice - mean + LINEAR_VARIANCE * (torch.tensor([[1.0], [0.0]]) - size / players)


def product_game_values(players: int, rho: float) -> Float[Tensor, "2 sizes"]:
    """Shapley values of the game S ↦ ρ^|S Δ T| for players in T and outside T, by the size of T from 0 to M.

    It is a product over players; a player in T has the factor 1 if present and ρ if not. By the multilinear extension,
    i in T has (1 − ρ) ∫ (t + (1−t) ρ)^{|T|−1} (tρ + 1 − t)^{M−|T|} dt over t from 0 to 1 (Owen 1972).
    """
    nodes, weights = (torch.from_numpy(each) for each in leggauss(players // 2 + 1))
    chance, weight = (nodes + 1) / 2, weights / 2
    inside, outside = chance + (1 - chance) * rho, chance * rho + 1 - chance
    size = torch.arange(players + 1)[:, None]
    member = inside ** (size - 1).clamp(min=0) * outside ** (players - size) @ weight
    other = inside**size * outside ** (players - size - 1).clamp(min=0) @ weight
    return (1 - rho) * torch.stack([member, -other])
