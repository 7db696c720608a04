"""Claims about games and the values of their players (book secs. 17.1, 17.2)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.shapley.division import (
    cautious_game,
    contested_garment,
    hopeful_game,
    run_to_the_bank,
    talmud_rule,
)
from parnassus.shapley.game import dividends, game, game_of, looked_up, members, players_of, sizes, unanimity
from parnassus.shapley.orders import by_orders
from parnassus.shapley.values import (
    banzhaf_values,
    broken_axioms,
    by_all_orders,
    interactions,
    shapley_values,
    subset_weights,
)

WORTHS = {(0,): 100.0, (1,): 125.0, (2,): 50.0, (0, 1): 270.0, (0, 2): 375.0, (1, 2): 350.0, (0, 1, 2): 500.0}
EXAMPLE = game_of(WORTHS, 3)
"""The worths of the book's example (book fig. 17.2)."""
CLAIMS = torch.tensor([100.0, 200.0, 300.0], dtype=torch.float64)
"""Of three heirs, as the Talmud has them."""


def random_games(players: int, count: int = 1, seed: int = 0) -> Tensor:
    worth = torch.randn(count, 2**players, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    worth[:, 0] = 0.0
    return worth


def sum_of_dividends(parts: Tensor) -> Tensor:
    """v(S) = Σ_{T⊆S} m(T)."""
    is_in = members(players_of(parts))
    contained = (is_in[:, None] >= is_in[None]).all(-1)
    return contained.to(parts) @ parts


@claim("B17.1-1", "B17.2-4")
def any_game_is_a_sum_of_unanimity_games() -> Evidence:
    """Any v is Σ_T m(T) u_T with its dividends m, and of u_T each in T gets 1/|T|, others nothing (book sec. 17.2)."""
    worth = random_games(4)[0]
    coalitions = members(4)
    parts = torch.stack([unanimity(4, row.nonzero()[:, 0].tolist()) for row in coalitions[1:]])
    equal = coalitions[1:].double() / sizes(4)[1:, None]
    return all_of(
        sum_of_games=close(dividends(worth)[1:] @ parts, worth, atol=1e-12),
        equal_shares=close(shapley_values(parts), equal, atol=1e-12),
    )


@claim("B17.1-2")
def three_ways_of_not_adding_up() -> Evidence:
    """Who achieve more together all gain, in a bankruptcy all lose, and who harms is charged (book sec. 17.1)."""
    synergy = game(3, lambda coalition: float(len(coalition) ** 2))
    estate = hopeful_game(300.0, CLAIMS)
    harm = game(3, lambda coalition: len(coalition) - (3.0 if 2 in coalition and len(coalition) > 1 else 0.0))
    return all_of(
        synergy=at_least(shapley_values(synergy).min(), float(synergy[1]) + 1),
        bankruptcy=at_most((shapley_values(estate) / CLAIMS).max(), 0.999),
        harm=at_most(shapley_values(harm)[2], -0.1),
        harmed_sum=close(shapley_values(harm).sum(), harm[-1], atol=1e-12),
    )


@claim("B17.1-3")
def the_garment_is_divided_three_to_one() -> Evidence:
    """Halving what is contested, and the value of either reading of the game, give ¾ and ¼ (book fig. 17.1)."""
    claims = torch.tensor([1.0, 0.5], dtype=torch.float64)
    right = torch.tensor([0.75, 0.25], dtype=torch.float64)
    return all_of(
        halving=close(torch.tensor(contested_garment(1.0, 1.0, 0.5), dtype=torch.float64), right, atol=1e-15),
        hopeful=close(shapley_values(hopeful_game(1.0, claims)), right, atol=1e-15),
        cautious=close(shapley_values(cautious_game(1.0, claims)), right, atol=1e-15),
    )


@claim("B17.1-4")
def the_bank_and_the_talmud_agree_for_two() -> Evidence:
    """Run to the bank is the value of both readings of a bankruptcy; the Talmud's rule is another for three heirs."""
    two = torch.tensor([1.0, 0.5], dtype=torch.float64)
    estates = (100.0, 200.0, 300.0, 400.0)
    bank = torch.stack([run_to_the_bank(estate, CLAIMS) for estate in estates])
    return all_of(
        hopeful=close(bank, torch.stack([shapley_values(hopeful_game(e, CLAIMS)) for e in estates]), atol=1e-10),
        cautious=close(bank, torch.stack([shapley_values(cautious_game(e, CLAIMS)) for e in estates]), atol=1e-10),
        two_alike=close(run_to_the_bank(1.0, two), talmud_rule(1.0, two), atol=1e-15),
        bank_of_200=close(bank[1], torch.tensor([100.0, 250.0, 250.0], dtype=torch.float64) / 3, atol=1e-10),
        talmud_of_200=close(talmud_rule(200.0, CLAIMS), torch.tensor([50.0, 75.0, 75.0]).double(), atol=1e-10),
    )


@claim("B17.2-1", "B17.2-2")
def subsets_and_orders_give_one_value() -> Evidence:
    """Both formulas agree; sampled orders miss by 1/√n; with its mirror an order misses no pair (book eq. 17.4)."""
    worth = random_games(6, seed=1)[0]
    exact, asked = shapley_values(worth), looked_up(worth)
    generator = torch.Generator().manual_seed(0)
    errors = {
        count: torch.stack(
            [(by_orders(asked, 6, 5 * count, generator=generator).values - exact).square() for _ in range(200)]
        ).mean()
        for count in (20, 320)
    }
    plain = by_orders(asked, 6, 5 * 4_000, generator=generator)
    pairs_only = sum_of_dividends(dividends(worth).masked_fill(sizes(6) > 2, 0.0))
    mirrored = by_orders(looked_up(pairs_only), 6, 5 * 4, mirrored=True, generator=generator)
    return all_of(
        all_orders=close(by_all_orders(worth).values, exact, atol=1e-12),
        by_dividends=close(interactions(worth).diagonal(), exact, atol=1e-12),
        sixteen_times_as_many=close((errors[20] / errors[320]).sqrt(), 4.0, rtol=0.15),
        sampled=at_most(((plain.values - exact) / plain.errors).abs().max(), 4.0),
        every_sample_is_efficient=close(plain.values.sum(), worth[-1], atol=1e-12),
        mirrored=close(mirrored.values, shapley_values(pairs_only), atol=1e-12),
    )


@claim("B17.2-3")
def the_example_is_worth_970_970_1060_sixths() -> Evidence:
    """Six orders, 18 contributions, rows that sum to 500, and (970, 970, 1060)/6 in the mean (book fig. 17.2)."""
    orders = by_all_orders(EXAMPLE)
    table = torch.tensor(
        [[100, 170, 230], [100, 125, 275], [145, 125, 230], [150, 125, 225], [325, 125, 50], [150, 300, 50]]
    )
    return all_of(
        entries=close(orders.added, table.double(), atol=0.0),
        rows=close(orders.added.sum(1), torch.full((6,), 500.0).double(), atol=0.0),
        by_orders=close(orders.values, torch.tensor([970.0, 970.0, 1060.0]).double() / 6, atol=1e-12),
        by_subsets=close(shapley_values(EXAMPLE), torch.tensor([970.0, 970.0, 1060.0]).double() / 6, atol=1e-12),
    )


@claim("B17.2-4")
def four_axioms_hold_and_banzhaf_breaks_one() -> Evidence:
    """Efficiency, symmetry, dummy and additivity hold; Banzhaf's value is not efficient (book sec. 17.2)."""
    games = random_games(5, count=40)
    worst: dict[str, float] = {}
    for worth, other in zip(games[::2], games[1::2], strict=True):
        for axiom, broken in broken_axioms(shapley_values, worth, other):
            worst[axiom] = max(worst.get(axiom, 0.0), broken)
    banzhaf = dict(broken_axioms(banzhaf_values, games[0], games[1]))
    return all_of(
        **{axiom: at_most(broken, 1e-12) for axiom, broken in worst.items()},
        banzhaf_is_not_efficient=at_least(banzhaf.pop("efficiency"), 0.1),
        banzhaf_else=at_most(max(banzhaf.values()), 1e-12),
    )


@erratum("B17.2-3", printed="1/6 (100 + 100 + 145 + 325 + 150) for player 1", right="970/6: one more 150")
def a_contribution_is_missing_from_the_mean() -> Correction:
    """The mean of six contributions lists five: 136.67 printed, 161.67 right (book eq. 17.6)."""
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
    """The weights count the coalition without i, the sum runs over those with it (book eq. 17.8)."""
    worth = random_games(4, seed=3)[0]
    exact = by_all_orders(worth).values
    size, weights = sizes(4), subset_weights(4)

    def weighted(of_size: Tensor) -> Tensor:
        """Σ_{z'∋i} of_size(|z'|) [v(z') − v(z' ∖ i)]."""
        numbers, players = torch.arange(16)[:, None], torch.arange(4)
        added = worth[:, None] - worth[numbers & ~(1 << players)]  # 0 where z' does not contain i
        return of_size[size] @ added

    nothing = torch.zeros(1, dtype=torch.float64)
    return Correction(
        printed=close(weighted(torch.cat([weights, nothing])), exact, atol=1e-6),
        corrected=close(weighted(torch.cat([nothing, weights])), exact, atol=1e-12),
    )
