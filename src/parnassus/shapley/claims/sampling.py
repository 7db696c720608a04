"""Claims about permutation and stratified sampling, and about stopping (book secs. 17.2, 17.4)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.shapley.claims.games import sum_of_dividends
from parnassus.shapley.estimators.estimate import Estimator, ShapleyEstimate, small_sample_errors
from parnassus.shapley.estimators.kernel_shap import kernel_shap
from parnassus.shapley.estimators.permutation_sampling import balanced_permutation_sampling, permutation_sampling
from parnassus.shapley.estimators.stopping import CachedGame, estimate_to_tolerance, max_standard_error
from parnassus.shapley.estimators.stratified_sampling import equal_allocation, neyman_allocation, stratified_sampling
from parnassus.shapley.games.cooperative_games import (
    all_coalitions,
    characteristic_function,
    coalition_sizes,
    harsanyi_dividends,
)
from parnassus.shapley.games.shapley_values import shapley_values

PLAYERS = 6
ESTIMATORS: dict[str, Estimator] = {
    "random": permutation_sampling,
    "antithetic": partial(permutation_sampling, antithetic=True),
    "balanced": balanced_permutation_sampling,
    "stratified": stratified_sampling,
}


def smooth_game(players: int = PLAYERS, seed: int = 0) -> Tensor:
    """A game whose worth is a small network of the players present."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(players, 8, generator=generator, dtype=torch.float64)
    return (all_coalitions(players).double() @ hidden).tanh() @ torch.randn(8, generator=generator, dtype=torch.float64)


def repeat_estimates(estimator: Estimator, worth: Tensor, budget: int, times: int, seed: int = 0) -> ShapleyEstimate:
    """Errors and standard errors of `times` independent estimates."""
    players, generator = len(worth).bit_length() - 1, torch.Generator().manual_seed(seed)
    found = [estimator(characteristic_function(worth), players, budget, generator=generator) for _ in range(times)]
    deviations = torch.stack([each.values for each in found]) - shapley_values(worth - worth[0])
    return ShapleyEstimate(deviations, torch.stack([each.errors for each in found]))


def root_mean_square_error(found: ShapleyEstimate) -> Tensor:
    """The root mean square of the errors."""
    return found.values.square().mean().sqrt()


@claim("B17.2-2", "B17.4-3")
def sampled_values_are_unbiased_and_efficient() -> Evidence:
    """The mean of many estimates is the Shapley value; each estimate sums to v(N) − v(∅) (book eq. 17.4)."""
    worth = smooth_game()
    evidence = {}
    for name, estimator in ESTIMATORS.items():
        deviation = repeat_estimates(estimator, worth, 120, 100).values
        evidence[f"{name}_mean"] = less_equal((deviation.mean(0) / (deviation.std(0) / 10)).abs().max(), 4.0)
        evidence[f"{name}_sum"] = close(deviation.sum(-1), torch.zeros(100).double(), atol=1e-12)
    return all_of(**evidence)


@claim("B17.2-2", "B17.4-3")
def four_times_the_budget_halves_the_error() -> Evidence:
    """The error of every estimator decreases as budget^(−1/2) (book sec. 17.2)."""
    worth, budgets = smooth_game(), (120, 480, 1_920)
    return all_of(
        **{
            name: rate(
                torch.tensor(budgets),
                torch.stack(
                    [root_mean_square_error(repeat_estimates(estimator, worth, budget, 40)) for budget in budgets]
                ),
                -0.5,
                atol=0.1,
            )
            for name, estimator in ESTIMATORS.items()
        }
    )


@claim("B17.2-2")
def antithetic_permutations_cancel_even_interactions() -> Evidence:
    """Antithetic permutations have no error from even interactions, and twice the variance from odd ones."""
    dividends = harsanyi_dividends(smooth_game(seed=1)) + harsanyi_dividends(smooth_game(seed=2))
    of_size = {size: sum_of_dividends(dividends.masked_fill(coalition_sizes(PLAYERS) != size, 0.0)) for size in (2, 3)}
    even = even_part(smooth_game(seed=3))
    odd = smooth_game(seed=3) - even
    plain, antithetic = ESTIMATORS["random"], ESTIMATORS["antithetic"]
    return all_of(
        pairs=less_equal(root_mean_square_error(repeat_estimates(antithetic, of_size[2], 120, 10)), 1e-12),
        pairs_with_plain_sampling=greater_equal(
            root_mean_square_error(repeat_estimates(plain, of_size[2], 120, 10)), 0.01
        ),
        even=less_equal(root_mean_square_error(repeat_estimates(antithetic, even, 120, 10)), 1e-12),
        odd_doubles_the_variance=close(
            (
                root_mean_square_error(repeat_estimates(antithetic, odd, 120, 150))
                / root_mean_square_error(repeat_estimates(plain, odd, 120, 150))
            ).square(),
            2.0,
            rtol=0.3,
        ),
    )


@claim("B17.2-2")
def balanced_permutations_remove_variance_between_positions() -> Evidence:
    """If every player has every position equally often, effects of the position have no error (Castro et al. 2017)."""
    concave = all_coalitions(PLAYERS).double().sum(1).sqrt()
    mixed = smooth_game() + 3 * concave
    balanced, plain = (repeat_estimates(ESTIMATORS[name], mixed, 120, 100) for name in ("balanced", "random"))
    return all_of(
        position_alone=less_equal(
            root_mean_square_error(repeat_estimates(balanced_permutation_sampling, concave, 60, 10)), 1e-12
        ),
        mixed=less_equal(root_mean_square_error(balanced) / root_mean_square_error(plain), 0.8),
    )


@claim("B17.4-3")
def neyman_allocation_beats_equal_allocation() -> Evidence:
    """Σ σ_s²/n_s is minimal for n_s ∝ σ_s; with estimated σ_s it is still smaller than for equal allocation."""
    generator = torch.Generator().manual_seed(0)
    deviations = torch.rand(50, 8, generator=generator, dtype=torch.float64)
    variance = {
        allocate: torch.stack([(d.square() / (allocate(d) / allocate(d).sum())).sum() for d in deviations])
        for allocate in (neyman_allocation, equal_allocation)
    }
    weights = torch.rand(8, generator=generator, dtype=torch.float64)
    vote = (all_coalitions(8).double() @ weights > weights.sum() / 2).double()  # decided by about half of the players
    estimated, equal = (
        repeat_estimates(partial(stratified_sampling, allocation=each), vote, 500, 40)
        for each in (neyman_allocation, equal_allocation)
    )
    return all_of(
        known=less_equal((variance[neyman_allocation] / variance[equal_allocation]).max(), 1.0),
        closed_form=close(variance[neyman_allocation], deviations.sum(1).square(), rtol=1e-12),
        estimated=less_equal(root_mean_square_error(estimated) / root_mean_square_error(equal), 0.95),
    )


@claim("B17.2-2", "B17.4-3")
def standard_errors_have_nominal_coverage() -> Evidence:
    """±1.96 standard errors cover the exact value in about 95 % of cases, for every estimator."""
    worth = smooth_game()
    evidence = {}
    for name, estimator in ESTIMATORS.items():
        found = repeat_estimates(estimator, worth, 480, 60)
        within = (found.values.abs() <= 1.96 * found.errors).double().mean()
        evidence[name] = close(within, 0.95, atol=0.045)
    return all_of(**evidence)


@claim("B17.2-2", "B17.4-3")
def small_sample_errors_have_nominal_coverage() -> Evidence:
    """Standard errors from few samples, adjusted by Student's t, have nominal coverage."""
    worth = smooth_game(8)
    exact = shapley_values(worth - worth[0])
    few: dict[str, tuple[Estimator, int]] = {
        "four_permutations": (permutation_sampling, 28),
        "three_antithetic_pairs": (partial(permutation_sampling, antithetic=True), 42),
    }
    few |= {
        "sixteen_complementary_pairs": (kernel_shap, 32),
        "two_latin_squares": (balanced_permutation_sampling, 112),
    }
    evidence = {}
    for name, (estimator, budget) in few.items():
        found = repeat_estimates(estimator, worth, budget, 150)
        evidence[name] = close((found.values.abs() <= 2 * found.errors).double().mean(), 0.954, atol=0.035)
    pairs = repeat_estimates(ESTIMATORS["antithetic"], worth, 42, 150)
    narrow = pairs.errors / small_sample_errors(torch.ones_like(exact), 2)
    return all_of(**evidence, not_widened=less_equal((pairs.values.abs() <= 2 * narrow).double().mean(), 0.85))


@claim("B17.4-3")
def sampling_stops_at_the_tolerance() -> Evidence:
    """Growing rounds stop soon after all standard errors are below the tolerance; the actual error is below it too."""
    worth, tolerance = smooth_game(10), 0.02
    exact = shapley_values(worth - worth[0])
    budgets, errors, deviations = [], [], []
    for seed in range(12):
        game = CachedGame(characteristic_function(worth))

        def estimate(budget: int, game: CachedGame = game, seed: int = seed) -> ShapleyEstimate:
            budgets.append(budget)
            return balanced_permutation_sampling(game, 10, budget, generator=torch.Generator().manual_seed(seed))

        found = estimate_to_tolerance(estimate, tolerance, first_budget=180, max_budget=10**6)
        errors.append(max_standard_error(found))
        deviations.append(found.values - exact)
    return all_of(
        standard_errors=less_equal(max(errors), tolerance),
        not_much_later=greater_equal(sum(errors) / len(errors), 0.85 * tolerance),
        actual_error=less_equal(torch.stack(deviations).square().mean().sqrt(), tolerance),
    )


def even_part(worth: Tensor) -> Tensor:
    """(v(S) + v(∖S))/2, which is invariant under complements and has only interactions of even order."""
    return (worth + worth.flip(0)) / 2
