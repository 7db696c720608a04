"""Claims about Kernel SHAP: weighted least squares gives Shapley values, with small errors (book sec. 17.4)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, less_equal
from parnassus.probability import standard_normal
from parnassus.shapley.estimators.coalition_sampling import exhaustive_sample
from parnassus.shapley.estimators.kernel_shap import (
    kernel_shap,
    kernel_shap_weights,
    limiting_inverse,
    weighted_regression,
)
from parnassus.shapley.estimators.permutation_sampling import permutation_sampling
from parnassus.shapley.games.cooperative_games import all_coalitions, characteristic_function
from parnassus.shapley.games.shapley_values import shapley_values


def random_game(players: int, seed: int = 0) -> Tensor:
    return standard_normal(2**players, seed=seed)


def design(players: int) -> tuple[Tensor, Tensor]:
    """Rows z of all coalitions but the empty and the grand one, and their weights π."""
    rows = all_coalitions(players)[1:-1]
    return rows.double(), kernel_shap_weights(players)[rows.sum(1)]


def fit_with_large_weight(worth: Tensor, large: float) -> Tensor:
    """φ = (XᵀWX)⁻¹XᵀW(y − v(∅)) over all coalitions, the grand one with a large weight instead of a constraint."""
    players = len(worth).bit_length() - 1
    rows, weight = design(players)
    x = torch.cat([rows, torch.ones(1, players, dtype=torch.float64)])
    w = torch.cat([weight, torch.tensor([large], dtype=torch.float64)])
    fitted: Tensor = torch.linalg.solve(x.mT @ (w[:, None] * x), x.mT @ (w * (worth[1:] - worth[0])))
    return fitted


@claim("B17.4-1")
def weighted_least_squares_gives_shapley_values() -> Evidence:
    """Values are exact with constraints or large weights at both ends; without them all φ shift (book sec. 17.4)."""
    worth = random_game(5)
    exact = shapley_values(worth - worth[0])
    constrained = weighted_regression(exhaustive_sample(5), worth[1:-1], worth[0], worth[-1]).values
    rows, weight = design(5)
    inner_rows = torch.linalg.solve(rows.mT @ (weight[:, None] * rows), rows.mT @ (weight * (worth[1:-1] - worth[0])))
    shift = inner_rows - exact
    return all_of(
        constrained=close(constrained, exact, atol=1e-12),
        large_weight=close(fit_with_large_weight(worth, 1e6), exact, atol=1e-5),
        shift_is_common=close(shift, shift.mean().expand(5), atol=1e-12),
    )


@claim("B17.4-2")
def the_inverse_converges() -> Evidence:
    """(XᵀWX)⁻¹ → I + (I − J)/(M − 1) like 1/weight, which yields Shapley's formula (book eq. 17.13)."""
    players = 5
    rows, weight = design(players)
    inner = rows.mT @ (weight[:, None] * rows)
    ones = torch.ones(players, players, dtype=torch.float64)
    gaps = [
        (torch.linalg.inv(inner + weight * ones) - limiting_inverse(players)).abs().max() for weight in (1e2, 1e4, 1e6)
    ]
    harmonic = sum(1 / number for number in range(1, players))
    worth = random_game(players, seed=1)
    closed = limiting_inverse(players) @ (rows.mT @ (weight * (worth[1:-1] - worth[0])))
    return all_of(
        hundredfold=close(gaps[0] / gaps[1], 100.0, rtol=0.02),
        hundredfold_again=close(gaps[1] / gaps[2], 100.0, rtol=0.02),
        diagonal=close(inner.diagonal(), ((players - 1) / players * harmonic) * ones[0], atol=1e-12),
        off_diagonal=close(inner[0, 1], (players - 1) / players * (harmonic - 1), atol=1e-12),
        closed_form=close(closed + (worth[-1] - worth[0]) / players, shapley_values(worth - worth[0]), atol=1e-12),
    )


@claim("B17.4-3")
def kernel_shap_beats_permutation_sampling() -> Evidence:
    """At equal budgets Kernel SHAP has a smaller error, with correct standard errors (book sec. 17.4)."""
    players, budget = 10, 240
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(players, 16, generator=generator, dtype=torch.float64)
    readout = torch.randn(16, generator=generator, dtype=torch.float64)
    worth = (all_coalitions(players).double() @ hidden).tanh() @ readout
    exact = shapley_values(worth - worth[0])
    found = [kernel_shap(characteristic_function(worth), players, budget, generator=generator) for _ in range(60)]
    permutations = [
        permutation_sampling(
            characteristic_function(worth), players, budget, antithetic=True, generator=generator
        ).values
        - exact
        for _ in range(60)
    ]
    actual = torch.stack([each.values - exact for each in found]).square().mean().sqrt()
    reported = torch.stack([each.errors for each in found]).square().mean().sqrt()
    return all_of(
        smaller=less_equal(actual / torch.stack(permutations).square().mean().sqrt(), 0.5),
        error_is_known=close(actual / reported, 1.0, rtol=0.2),
        always_efficient=close(found[0].values.sum(), worth[-1] - worth[0], atol=1e-12),
    )


@erratum(
    "B17.4-1", "B17.4-2", printed="(XWX)⁻¹, an approximation", right="(XᵀWX)⁻¹, whose limit needs the efficiency term"
)
def the_limit_lacks_the_efficiency_term() -> Correction:
    """The limiting inverse applied to the inner rows lacks the term (v(N) − v(∅))/M (book sec. 17.4)."""
    worth = random_game(5, seed=2)
    rows, weight = design(5)
    limit = limiting_inverse(5) @ (rows.mT @ (weight * (worth[1:-1] - worth[0])))
    exact = shapley_values(worth - worth[0])
    return Correction(
        printed=close(limit, exact, atol=1e-3),
        corrected=close(limit + (worth[-1] - worth[0]) / 5, exact, atol=1e-12),
    )
