"""Claims about games and the values of their players (book secs. 17.1, 17.2)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability import standard_normal
from parnassus.shapley.estimators.permutation_sampling import permutation_sampling
from parnassus.shapley.games.bankruptcy import (
    contested_garment,
    optimistic_bankruptcy_game,
    pessimistic_bankruptcy_game,
    run_to_the_bank,
    talmud_rule,
)
from parnassus.shapley.games.cooperative_games import (
    all_coalitions,
    characteristic_function,
    coalition_sizes,
    game_from_worths,
    game_table,
    harsanyi_dividends,
    num_players,
    unanimity_game,
)
from parnassus.shapley.games.shapley_values import (
    axiom_violations,
    banzhaf_values,
    interaction_indices,
    permutation_table,
    shapley_values,
    subset_weights,
)

WORTHS = {(0,): 100.0, (1,): 125.0, (2,): 50.0, (0, 1): 270.0, (0, 2): 375.0, (1, 2): 350.0, (0, 1, 2): 500.0}
EXAMPLE = game_from_worths(WORTHS, 3)
"""The book's example (book fig. 17.2)."""
CLAIMS = torch.tensor([100.0, 200.0, 300.0], dtype=torch.float64)
"""The Talmud's example with three heirs."""


def random_games(players: int, count: int = 1, seed: int = 0) -> Tensor:
    worth = standard_normal(count, 2**players, seed=seed)
    worth[:, 0] = 0.0
    return worth


def sum_of_dividends(parts: Tensor) -> Tensor:
    """v(S) = Σ_{T⊆S} m(T)."""
    is_in = all_coalitions(num_players(parts))
    contained = (is_in[:, None] >= is_in[None]).all(-1)
    return contained.to(parts) @ parts


@claim("B17.1-1", "B17.2-4")
def any_game_is_a_sum_of_unanimity_games() -> Evidence:
    """Any v is Σ_T m(T) u_T with dividends m; in u_T members of T have value 1/|T|, others 0 (book sec. 17.2)."""
    worth = random_games(4)[0]
    coalitions = all_coalitions(4)
    basis = torch.stack([unanimity_game(4, row.nonzero()[:, 0].tolist()) for row in coalitions[1:]])
    equal = coalitions[1:].double() / coalition_sizes(4)[1:, None]
    return all_of(
        sum_of_games=close(harsanyi_dividends(worth)[1:] @ basis, worth, atol=1e-12),
        equal_shares=close(shapley_values(basis), equal, atol=1e-12),
    )


@claim("B17.1-2")
def worths_need_not_be_additive() -> Evidence:
    """Synergy benefits all players, bankruptcy harms all; a harmful player has a negative value (book sec. 17.1)."""
    synergy = game_table(3, lambda coalition: float(len(coalition) ** 2))
    estate = optimistic_bankruptcy_game(300.0, CLAIMS)
    harm = game_table(3, lambda coalition: len(coalition) - (3.0 if 2 in coalition and len(coalition) > 1 else 0.0))
    return all_of(
        synergy=greater_equal(shapley_values(synergy).min(), float(synergy[1]) + 1),
        bankruptcy=less_equal((shapley_values(estate) / CLAIMS).max(), 0.999),
        harm=less_equal(shapley_values(harm)[2], -0.1),
        harm_is_efficient=close(shapley_values(harm).sum(), harm[-1], atol=1e-12),
    )


@claim("B17.1-3")
def the_contested_garment_is_divided_three_to_one() -> Evidence:
    """Contested garment and the Shapley values of both bankruptcy games are ¾ and ¼ (book fig. 17.1)."""
    claims = torch.tensor([1.0, 0.5], dtype=torch.float64)
    right = torch.tensor([0.75, 0.25], dtype=torch.float64)
    return all_of(
        contested_garment=close(torch.tensor(contested_garment(1.0, 1.0, 0.5), dtype=torch.float64), right, atol=1e-15),
        optimistic=close(shapley_values(optimistic_bankruptcy_game(1.0, claims)), right, atol=1e-15),
        pessimistic=close(shapley_values(pessimistic_bankruptcy_game(1.0, claims)), right, atol=1e-15),
    )


@claim("B17.1-4")
def run_to_the_bank_and_talmud_rule_agree_for_two() -> Evidence:
    """Run to the bank is the Shapley value of both bankruptcy games; for three heirs the Talmud rule differs."""
    two = torch.tensor([1.0, 0.5], dtype=torch.float64)
    estates = (100.0, 200.0, 300.0, 400.0)
    bank = torch.stack([run_to_the_bank(estate, CLAIMS) for estate in estates])
    return all_of(
        optimistic=close(
            bank, torch.stack([shapley_values(optimistic_bankruptcy_game(e, CLAIMS)) for e in estates]), atol=1e-10
        ),
        pessimistic=close(
            bank, torch.stack([shapley_values(pessimistic_bankruptcy_game(e, CLAIMS)) for e in estates]), atol=1e-10
        ),
        equal_for_two=close(run_to_the_bank(1.0, two), talmud_rule(1.0, two), atol=1e-15),
        bank_of_200=close(bank[1], torch.tensor([100.0, 250.0, 250.0], dtype=torch.float64) / 3, atol=1e-10),
        talmud_of_200=close(talmud_rule(200.0, CLAIMS), torch.tensor([50.0, 75.0, 75.0]).double(), atol=1e-10),
    )


@claim("B17.2-1", "B17.2-2")
def subset_and_permutation_formulas_agree() -> Evidence:
    """Both formulas agree; sampling errors are O(1/√n), or 0 for antithetic pairs in pairwise games (book eq. 17.4)."""
    worth = random_games(6, seed=1)[0]
    exact, game = shapley_values(worth), characteristic_function(worth)
    generator = torch.Generator().manual_seed(0)
    errors = {
        count: torch.stack(
            [
                (permutation_sampling(game, 6, 5 * count, generator=generator).values - exact).square()
                for _ in range(200)
            ]
        ).mean()
        for count in (20, 320)
    }
    plain = permutation_sampling(game, 6, 5 * 4_000, generator=generator)
    pairs_only = sum_of_dividends(harsanyi_dividends(worth).masked_fill(coalition_sizes(6) > 2, 0.0))
    antithetic = permutation_sampling(
        characteristic_function(pairs_only), 6, 5 * 4, antithetic=True, generator=generator
    )
    return all_of(
        all_orders=close(permutation_table(worth).values, exact, atol=1e-12),
        by_dividends=close(interaction_indices(worth).diagonal(), exact, atol=1e-12),
        sixteen_times_the_samples=close((errors[20] / errors[320]).sqrt(), 4.0, rtol=0.15),
        sampled=less_equal(((plain.values - exact) / plain.errors).abs().max(), 4.0),
        every_sample_is_efficient=close(plain.values.sum(), worth[-1], atol=1e-12),
        antithetic=close(antithetic.values, shapley_values(pairs_only), atol=1e-12),
    )


@claim("B17.2-3")
def the_example_has_shapley_values_970_970_1060_sixths() -> Evidence:
    """The 18 contributions of six permutations have rows of sum 500 and means (970, 970, 1060)/6 (book fig. 17.2)."""
    table = permutation_table(EXAMPLE)
    contributions = torch.tensor(
        [[100, 170, 230], [100, 125, 275], [145, 125, 230], [150, 125, 225], [325, 125, 50], [150, 300, 50]]
    )
    return all_of(
        entries=close(table.contributions, contributions.double(), atol=0.0),
        rows=close(table.contributions.sum(1), torch.full((6,), 500.0).double(), atol=0.0),
        by_permutations=close(table.values, torch.tensor([970.0, 970.0, 1060.0]).double() / 6, atol=1e-12),
        by_subsets=close(shapley_values(EXAMPLE), torch.tensor([970.0, 970.0, 1060.0]).double() / 6, atol=1e-12),
    )


@claim("B17.2-4")
def shapley_satisfies_the_axioms_and_banzhaf_is_not_efficient() -> Evidence:
    """Efficiency, symmetry, dummy and additivity hold; the Banzhaf value is not efficient (book sec. 17.2)."""
    games = random_games(5, count=40)
    worst: dict[str, float] = {}
    for worth, other in zip(games[::2], games[1::2], strict=True):
        for axiom, violation in axiom_violations(shapley_values, worth, other):
            worst[axiom] = max(worst.get(axiom, 0.0), violation)
    banzhaf = dict(axiom_violations(banzhaf_values, games[0], games[1]))
    return all_of(
        **{axiom: less_equal(violation, 1e-12) for axiom, violation in worst.items()},
        banzhaf_is_not_efficient=greater_equal(banzhaf.pop("efficiency"), 0.1),
        banzhaf_other_axioms=less_equal(max(banzhaf.values()), 1e-12),
    )


@erratum("B17.2-3", printed="1/6 (100 + 100 + 145 + 325 + 150) for player 1", right="970/6: one more 150")
def a_contribution_is_missing_from_the_mean() -> Correction:
    """The mean of six contributions lists five: 136.67 printed, 161.67 correct (book eq. 17.6)."""
    value = shapley_values(EXAMPLE)[0]
    return Correction(
        printed=close(value, (100 + 100 + 145 + 325 + 150) / 6, atol=1e-9),
        corrected=close(value, (100 + 100 + 145 + 325 + 150 + 150) / 6, atol=1e-9),
    )


@erratum(
    "B17.3-2",
    printed="weights |z'|! (M − |z'| − 1)! / M! over z' that contain i",
    right="(|z'| − 1)! (M − |z'|)! / M!",
)
def the_weights_are_shifted_by_one() -> Correction:
    """The weights are those of coalitions without i, but the sum is over coalitions with i (book eq. 17.8)."""
    worth = random_games(4, seed=3)[0]
    exact = permutation_table(worth).values
    size, weights = coalition_sizes(4), subset_weights(4)

    def weighted_sum(of_size: Tensor) -> Tensor:
        """Σ_{z'∋i} of_size(|z'|) [v(z') − v(z' ∖ i)]."""
        numbers, players = torch.arange(16)[:, None], torch.arange(4)
        gains = worth[:, None] - worth[numbers & ~(1 << players)]  # 0 where z' does not contain i
        return of_size[size] @ gains

    nothing = torch.zeros(1, dtype=torch.float64)
    return Correction(
        printed=close(weighted_sum(torch.cat([weights, nothing])), exact, atol=1e-6),
        corrected=close(weighted_sum(torch.cat([nothing, weights])), exact, atol=1e-12),
    )
