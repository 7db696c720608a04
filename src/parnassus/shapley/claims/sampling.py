"""Claims about values from samples: orders of all kinds, sizes, and when to stop (book secs. 17.2, 17.4)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.shapley.claims.games import sum_of_dividends
from parnassus.shapley.game import dividends, looked_up, members, sizes
from parnassus.shapley.kernel_shap import kernel_shap
from parnassus.shapley.orders import by_balanced_orders, by_orders
from parnassus.shapley.sampling import Estimator
from parnassus.shapley.stopping import Remembered, largest_error, until
from parnassus.shapley.strata import by_sizes, evenly, neyman
from parnassus.shapley.values import Estimate, shapley_values, widened

PLAYERS = 6
ESTIMATORS: dict[str, Estimator] = {
    "random": by_orders,
    "mirrored": partial(by_orders, mirrored=True),
    "balanced": by_balanced_orders,
    "by_size": by_sizes,
}


def smooth_game(players: int = PLAYERS, seed: int = 0) -> Tensor:
    """A small network of who is present."""
    source = torch.Generator().manual_seed(seed)
    hidden = torch.randn(players, 8, generator=source, dtype=torch.float64)
    return (members(players).double() @ hidden).tanh() @ torch.randn(8, generator=source, dtype=torch.float64)


def repeated(estimator: Estimator, worth: Tensor, budget: int, times: int, seed: int = 0) -> Estimate:
    """Values less what is right, and their errors, `times` over."""
    players, source = len(worth).bit_length() - 1, torch.Generator().manual_seed(seed)
    found = [estimator(looked_up(worth), players, budget, generator=source) for _ in range(times)]
    off = torch.stack([each.values for each in found]) - shapley_values(worth - worth[0])
    return Estimate(off, torch.stack([each.errors for each in found]))


def missed(found: Estimate) -> Tensor:
    """The root mean square of what was missed."""
    return found.values.square().mean().sqrt()


@claim("B17.2-2", "B17.4-3")
def sampled_values_are_unbiased_and_add_up() -> Evidence:
    """The mean of many estimates is Shapley's value; each estimate sums to v(all) − v(∅) (book eq. 17.4)."""
    worth = smooth_game()
    evidence = {}
    for name, estimator in ESTIMATORS.items():
        off = repeated(estimator, worth, 120, 100).values
        evidence[f"{name}_mean"] = at_most((off.mean(0) / (off.std(0) / 10)).abs().max(), 4.0)
        evidence[f"{name}_sum"] = close(off.sum(-1), torch.zeros(100).double(), atol=1e-12)
    return all_of(**evidence)


@claim("B17.2-2", "B17.4-3")
def four_times_as_many_questions_halve_the_error() -> Evidence:
    """Errors of sampled values fall like budget^(−1/2), whichever the estimator (book sec. 17.2)."""
    worth, budgets = smooth_game(), (120, 480, 1_920)
    return all_of(
        **{
            name: rate(
                torch.tensor(budgets),
                torch.stack([missed(repeated(estimator, worth, budget, 40)) for budget in budgets]),
                -0.5,
                atol=0.1,
            )
            for name, estimator in ESTIMATORS.items()
        }
    )


@claim("B17.2-2")
def mirrored_orders_help_where_twos_and_fours_count() -> Evidence:
    """Mirrored orders err less at equal budgets where even interactions rule, not at all for pairs, more for odd."""
    drawn = dividends(smooth_game(seed=1)) + dividends(smooth_game(seed=2))
    of_size = {size: sum_of_dividends(drawn.masked_fill(sizes(PLAYERS) != size, 0.0)) for size in (2, 3)}
    even = even_part(smooth_game(seed=3))
    odd = smooth_game(seed=3) - even
    plain, mirrored = ESTIMATORS["random"], ESTIMATORS["mirrored"]
    return all_of(
        pairs=at_most(missed(repeated(mirrored, of_size[2], 120, 10)), 1e-12),
        pairs_otherwise=at_least(missed(repeated(plain, of_size[2], 120, 10)), 0.01),
        even=at_most(missed(repeated(mirrored, even, 120, 10)), 1e-12),
        odd_costs_double=close(
            (missed(repeated(mirrored, odd, 120, 150)) / missed(repeated(plain, odd, 120, 150))).square(),
            2.0,
            rtol=0.3,
        ),
    )


@claim("B17.2-2")
def balance_takes_away_what_the_place_does() -> Evidence:
    """With every player at every place equally often, what depends on the place alone is known (Castro et al. 2017)."""
    concave = members(PLAYERS).double().sum(1).sqrt()
    mixed = smooth_game() + 3 * concave
    balanced, plain = (repeated(ESTIMATORS[name], mixed, 120, 100) for name in ("balanced", "random"))
    return all_of(
        place_alone=at_most(missed(repeated(by_balanced_orders, concave, 60, 10)), 1e-12),
        mixed=at_most(missed(balanced) / missed(plain), 0.8),
    )


@claim("B17.4-3")
def neyman_shares_out_better_than_evenly() -> Evidence:
    """Σ σ_s²/n_s is least for n_s ∝ σ_s; with σ_s learned on the way it is still less than by even shares."""
    source = torch.Generator().manual_seed(0)
    deviations = torch.rand(50, 8, generator=source, dtype=torch.float64)
    variance = {
        allocate: torch.stack([(d.square() / (allocate(d) / allocate(d).sum())).sum() for d in deviations])
        for allocate in (neyman, evenly)
    }
    weights = torch.rand(8, generator=source, dtype=torch.float64)
    vote = (members(8).double() @ weights > weights.sum() / 2).double()  # decided where half of them are there
    learned, even = (repeated(partial(by_sizes, allocate=each), vote, 500, 40) for each in (neyman, evenly))
    return all_of(
        known=at_most((variance[neyman] / variance[evenly]).max(), 1.0),
        closed_form=close(variance[neyman], deviations.sum(1).square(), rtol=1e-12),
        learned=at_most(missed(learned) / missed(even), 0.95),
    )


@claim("B17.2-2", "B17.4-3")
def standard_errors_cover() -> Evidence:
    """Within 1.96 standard errors lies what is right about 95 times in a hundred, for every estimator."""
    worth = smooth_game()
    evidence = {}
    for name, estimator in ESTIMATORS.items():
        found = repeated(estimator, worth, 480, 60)
        within = (found.values.abs() <= 1.96 * found.errors).double().mean()
        evidence[name] = close(within, 0.95, atol=0.045)
    return all_of(**evidence)


@claim("B17.2-2", "B17.4-3")
def few_samples_cover_as_well() -> Evidence:
    """Errors that a few samples tell are widened as Student's t asks, and hold the truth as often as they should."""
    worth = smooth_game(8)
    exact = shapley_values(worth - worth[0])
    few: dict[str, tuple[Estimator, int]] = {
        "four_orders": (by_orders, 28),
        "three_pairs": (partial(by_orders, mirrored=True), 42),
    }
    few |= {"sixteen_complements": (kernel_shap, 32), "two_squares": (by_balanced_orders, 112)}
    evidence = {}
    for name, (estimator, budget) in few.items():
        found = repeated(estimator, worth, budget, 150)
        evidence[name] = close((found.values.abs() <= 2 * found.errors).double().mean(), 0.954, atol=0.035)
    pairs = repeated(ESTIMATORS["mirrored"], worth, 42, 150)
    narrow = pairs.errors / widened(torch.ones_like(exact), 2)
    return all_of(**evidence, without=at_most((pairs.values.abs() <= 2 * narrow).double().mean(), 0.85))


@claim("B17.4-3")
def sampling_stops_at_the_wished_error() -> Evidence:
    """Rounds that grow stop once every standard error is as wished, soon after, and miss by no more than it."""
    worth, wished = smooth_game(10), 0.02
    exact = shapley_values(worth - worth[0])
    needed, stopped, off = [], [], []
    for seed in range(12):
        game = Remembered(looked_up(worth))

        def grow(budget: int, game: Remembered = game, seed: int = seed) -> Estimate:
            needed.append(budget)
            return by_balanced_orders(game, 10, budget, generator=torch.Generator().manual_seed(seed))

        found = until(grow, wished, first=180, most=10**6)
        stopped.append(largest_error(found))
        off.append(found.values - exact)
    return all_of(
        errors=at_most(max(stopped), wished),
        not_much_later=at_least(sum(stopped) / len(stopped), 0.85 * wished),
        missed=at_most(torch.stack(off).square().mean().sqrt(), wished),
    )


def even_part(worth: Tensor) -> Tensor:
    """(v(S) + v(∖S))/2: who is present and who is absent may change sides, and with them all signs."""
    return (worth + worth.flip(0)) / 2
