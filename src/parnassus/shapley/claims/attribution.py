"""Claims about additive attributions of predictions (book secs. 17.0, 17.3)."""

import torch
from torch import nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue, mean_imputation
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import permutation_table

FEATURES = 6


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 2)).double()


@claim("B17.0-1", "B17.3-1")
def attributions_sum_to_the_prediction() -> Evidence:
    """For any budget base value + Σ φ = f(x); a feature equal to the background has φ = 0 (book sec. 17.3)."""
    model, x = as_model(network()), standard_normal(5, FEATURES, seed=1)
    background = standard_normal(20, FEATURES, seed=2)
    exact, sampled = (
        explain_exactly(InterventionalValue(model, background), x),
        explain(InterventionalValue(model, background), x, 20, generator=torch.Generator().manual_seed(0)),
    )
    same = background.clone()
    same[:, 3] = x[0, 3]
    missing = explain_exactly(InterventionalValue(model, same), x[:1])
    return all_of(
        exact=close(exact.prediction, model(x), atol=1e-12),
        sampled=close(sampled.prediction, model(x), atol=1e-12),
        base_values=close(exact.base_values[0], model(background).mean(0), atol=1e-12),
        missing=close(missing.values[0, :, 3], torch.zeros(2).double(), atol=1e-12),
    )


@claim("B17.3-1")
def attributions_are_consistent() -> Evidence:
    """A feature with larger marginal contributions in another model has a larger value (book eq. 17.7)."""
    x, background = standard_normal(1, FEATURES, seed=3).abs() + 0.1, torch.zeros(1, FEATURES, dtype=torch.float64)
    weights = standard_normal(20, FEATURES, seed=4)
    gains = []
    for w in weights:
        smaller = as_model(lambda z, w=w: (z @ w).tanh() + z[:, 0] * z[:, 1])
        larger = as_model(lambda z, w=w: (z @ w).tanh() + z[:, 0] * z[:, 1] + z[:, 2] * (1 + z[:, 4].square()))
        values = [explain_exactly(InterventionalValue(f, background), x).values[0, 0, 2] for f in (smaller, larger)]
        gains.append(values[1] - values[0])
    return all_of(not_smaller=greater_equal(torch.stack(gains).min(), 0.0))


@claim("B17.3-3")
def linear_models_have_closed_form_attributions() -> Evidence:
    """For linear f, φ_j = w_j (x_j − E x_j); conditional values differ for correlated features (book sec. 17.3)."""
    w = standard_normal(FEATURES, seed=5)
    linear = as_model(lambda z: z @ w)
    mixing = torch.eye(FEATURES, dtype=torch.float64)
    mixing[0, 1] = 2.0  # the second depends on the first
    background = standard_normal(200, FEATURES, seed=6) @ mixing
    x = standard_normal(4, FEATURES, seed=7) @ mixing
    closed_form = (w * (x - background.mean(0)))[:, None]
    interventional, imputed, conditional = (
        explain_exactly(value, x)
        for value in (
            InterventionalValue(linear, background),
            mean_imputation(linear, background),
            ConditionalGaussianValue(linear, background, num_draws=2),
        )
    )
    gap = (conditional.values - closed_form).abs().amax((0, 1))
    return all_of(
        interventional=close(interventional.values, closed_form, atol=1e-10),
        imputed=close(imputed.values, closed_form, atol=1e-10),
        conditional_sums=close(conditional.prediction, linear(x), atol=1e-10),
        correlated_differ=greater_equal(gap[:2].min(), 0.3),
        others_differ_less=less_equal(gap[2:].max(), 0.25 * float(gap[:2].max())),
    )


@claim("B17.3-4")
def every_permutation_sums_to_the_prediction() -> Evidence:
    """In each permutation contributions lead from the base value to f(x); their mean is SHAP (book fig. 17.3)."""
    value = InterventionalValue(as_model(network(1)), standard_normal(10, FEATURES, seed=8))
    x = standard_normal(1, FEATURES, seed=9)
    worth = value(x, all_coalitions(FEATURES))[0, 0]
    table = permutation_table(worth)
    return all_of(
        every_permutation_sums=close(
            worth[0] + table.contributions.sum(1), worth[-1].expand(len(table.contributions)), atol=1e-12
        ),
        mean_is_shap=close(table.values, explain_exactly(value, x).values[0, 0], atol=1e-12),
        permutations_differ=greater_equal(table.contributions.std(0).max(), 0.01),
    )
