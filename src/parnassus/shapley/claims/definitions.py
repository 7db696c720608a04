"""Claims about games, masked texts, deletion curves, plots and estimators by their definitions (book ch. 17)."""

from itertools import permutations

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises
from parnassus.probability import seeded_generator, standard_normal
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.estimator_explanations import (
    explain_with_estimator,
    explain_with_estimator_to_tolerance,
)
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.masked_text import masked_ids, masked_words
from parnassus.shapley.estimators.kernel_shap import kernel_shap
from parnassus.shapley.estimators.permutation_sampling import permutation_sampling
from parnassus.shapley.figures.force import plot_force
from parnassus.shapley.figures.waterfall import plot_waterfall
from parnassus.shapley.games.cooperative_games import characteristic_function, game_from_worths, game_table
from parnassus.shapley.games.shapley_values import shapley_values

WORTHS = {(0,): 100.0, (1,): 125.0, (0, 1): 270.0, (1, 2): 375.0, (0, 2): 350.0, (0, 1, 2): 500.0}


def values_by_arrival(worths: dict[tuple[int, ...], float], players: int) -> Tensor:
    """Mean contribution of each player over all orders of arrival, from the listed worths."""
    total = torch.zeros(players, dtype=torch.float64)
    orders = list(permutations(range(players)))
    for order in orders:
        for position, player in enumerate(order):
            before, after = (tuple(sorted(order[:end])) for end in (position, position + 1))
            total[player] += worths.get(after, 0.0) - worths.get(before, 0.0)
    return total / len(orders)


@claim("B17.1-1", "B17.3-2")
def listed_worths_give_the_values_of_all_orders_of_arrival() -> Evidence:
    """The mean over the six orders of three players, 970/6 for the second; unlisted coalitions are worth 0."""
    worth = game_from_worths(WORTHS, 3)
    values, exact = shapley_values(worth), values_by_arrival(WORTHS, 3)
    return all_of(
        values=close(values, exact, rtol=1e-12),
        sum_of_the_values=close(values.sum(), 500.0, rtol=1e-12),
        unlisted=close(worth[4], 0.0),
        different_players=greater_equal(values.std(), 10.0),
    )


@erratum("B17.1-1", printed="v = 0", right="v(∅) = 0")
def the_empty_coalition_is_worth_nothing() -> Correction:
    """With v = 0 nothing is shared; with v(∅) = 0 the values sum to v(N), else to v(N) − v(∅) (book sec. 17.1)."""
    worth = game_from_worths(WORTHS, 3)
    return Correction(
        printed=close(shapley_values(0 * worth).sum(), 500.0),
        corrected=all_of(
            payoff=close(shapley_values(worth).sum(), 500.0, rtol=1e-12),
            otherwise=close(shapley_values(worth.index_fill(0, torch.tensor([0]), 20.0)).sum(), 480.0, rtol=1e-12),
            rejected=raises(ValueError, lambda: game_table(3, lambda coalition: 20.0 + len(coalition))),
        ),
    )


def count_good_words(texts: list[str]) -> Tensor:
    """1 for “good”, −2 for a “not” right before it."""
    rows = [text.split().count("good") - 2 * " ".join(text.split()).count("not good") for text in texts]
    return torch.tensor(rows, dtype=torch.float64)[:, None]


@claim("B17.0-1")
def omission_and_masking_of_words_are_different_games() -> Evidence:
    """In “not so good” omission of “so” makes “not good”, a mask token does not; by all orders (book sec. 17.0)."""
    parts, found = {}, []
    for name, mask in (("omission", None), ("mask", "_")):
        game, worths = masked_words(count_good_words, "not so good", mask), {}
        for row in torch.cartesian_prod(*[torch.tensor([False, True])] * 3):
            words = [word if known else mask for word, known in zip(("not", "so", "good"), row.tolist(), strict=True)]
            text = " ".join(word for word in words if word is not None)
            worths[tuple(row.nonzero()[:, 0].tolist())] = float(count_good_words([text]))
        found.append(explain_exactly(game, game.full_input).values.flatten())
        parts[name] = close(found[-1], values_by_arrival(worths, 3), atol=1e-12)
    ids = masked_ids(lambda rows: rows.double().sum(1, keepdim=True), torch.tensor([5, 7]), mask_token_id=2)
    return all_of(
        **parts,
        difference=greater_equal((found[0] - found[1]).abs().max(), 0.2),
        ids_above_the_mask=close(explain_exactly(ids, ids.full_input).values.flatten(), torch.tensor([3.0, 5.0])),
    )


@claim("B17.0-1")
def deletion_curves_remove_the_highest_scores_first() -> Evidence:
    """From the prediction to the base value; the curve of the true values falls fastest (book sec. 17.0)."""
    weights = torch.tensor([3.0, -1.0, 0.5, 2.0], dtype=torch.float64)
    value = InterventionalValue(lambda x: (x @ weights)[:, None], torch.zeros(1, 4, dtype=torch.float64))
    x, output = torch.ones(1, 4, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    own, reverse = (deletion_curve(value, x, output, scores[None])[0] for scores in (weights, -weights))
    return all_of(
        curve=close(own, torch.tensor([4.5, 1.5, -0.5, -1.0, 0.0]), atol=1e-12),
        reverse=close(reverse, torch.tensor([4.5, 5.5, 5.0, 3.0, 0.0]), atol=1e-12),
    )


@claim("B17.3-4")
def plots_lead_from_the_base_value_to_the_prediction() -> Evidence:
    """The bars of a waterfall are chained by their ends and sum to f(x); arrows of a force plot meet there."""
    values, names = torch.tensor([0.5, -1.2, 0.3]), ("a", "b", "c")
    bars = plot_waterfall(2.0, values, names).axes[0].patches
    corners = [bar.get_patch_transform().transform(bar.get_path().vertices)[:, 0] for bar in bars]
    ends = sorted([float(x.min()), float(x.max())] for x in corners)
    chain = [[1.6, 2.8], [2.0, 2.3], [2.3, 2.8]]  # 2 + 0.3 + 0.5 − 1.2
    force = plot_force(2.0, values, names).axes[0]
    edges = torch.cat([torch.tensor(patch.get_path().vertices)[:, 0].unique() for patch in force.patches])
    return all_of(
        waterfall=close(torch.tensor(ends), torch.tensor(chain), atol=1e-6),
        force_meets_at_the_prediction=less_equal((edges - 1.6).abs().min(), 1e-6),
    )


@claim("B17.4-1", "B17.4-3")
def sampled_coalitions_of_kernel_shap_give_the_values() -> Evidence:
    """Exact with all 2^M − 2 coalitions; with fewer within four standard errors, efficient at any budget."""
    worth = standard_normal(2**8)
    worth = worth - worth[0]
    exact, game = shapley_values(worth), characteristic_function(worth)
    full = kernel_shap(game, 8, 2**8 - 2)
    few = kernel_shap(game, 8, 90, generator=seeded_generator())
    return all_of(
        all_coalitions=close(full.values, exact, atol=1e-9),
        efficiency=close(few.values.sum(), worth[-1], atol=1e-9),
        within_the_errors=less_equal((few.values - exact).abs() / few.errors, 4.0),
        errors=greater_equal(few.errors, 0.01),
    )


@claim("B17.4-3")
def explanations_by_an_estimator_agree_with_the_exact_ones() -> Evidence:
    """Within four standard errors at a fixed budget; the tolerance is met, and 2^M coalitions are exact."""
    matrix = standard_normal(8, 6, seed=1) / 2
    value = InterventionalValue(lambda x: (x @ matrix).tanh().sum(1, keepdim=True), standard_normal(7, 8, seed=2))
    x = standard_normal(2, 8, seed=3)
    exact = explain_exactly(value, x).values
    fixed = explain_with_estimator(permutation_sampling, value, x, 160, generator=seeded_generator())
    everything = explain_with_estimator(permutation_sampling, value, x, 256)
    reached = explain_with_estimator_to_tolerance(
        kernel_shap, value, x, 0.05, first_budget=40, max_budget=240, generator=seeded_generator()
    )
    return all_of(
        within_the_errors=less_equal((fixed.values - exact).abs(), 4 * fixed.errors + 1e-9),
        error_of_the_budget=greater_equal((fixed.values - exact).abs().max(), 1e-4),
        exact=close(everything.values, exact, atol=1e-12),
        sum_of_the_values=close(fixed.values.sum(-1), exact.sum(-1), atol=1e-9),
        tolerance=less_equal(reached.errors, 0.05),
        error_within_the_tolerance=less_equal((reached.values - exact).abs(), 0.2),
    )
