"""Claims about faster Kernel SHAP: a shared first layer, smaller variance, a stopping rule (book sec. 17.4)."""

from functools import cache

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.probability import seeded_generator, standard_normal
from parnassus.shapley.attributions.adaptive_kernel_shap import explain_to_tolerance
from parnassus.shapley.attributions.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.linear_first_layer import LinearFirstLayer, interventional_value_function
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.attributions.value_functions import SingleGame
from parnassus.shapley.estimators.kernel_shap import weighted_regression
from parnassus.shapley.estimators.regression_adjustment import regression_adjustment
from parnassus.shapley.estimators.stopping import max_standard_error
from parnassus.shapley.games.cooperative_games import all_coalitions

FEATURES, SEEDS = 10, 12


@cache
def build_example() -> tuple[LinearFirstLayer, Tensor, Tensor]:
    """A network of two hidden layers with a background, rows, and their exact values."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2)).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(2.5 if weight.ndim > 1 else 1.0)  # as nonlinear as trained networks
    value = interventional_value_function(network, standard_normal(20, FEATURES, seed=1))
    if not isinstance(value, LinearFirstLayer):
        raise TypeError("a sequence with a linear first layer must give a LinearFirstLayer")
    x = standard_normal(5, FEATURES, seed=2)
    return value, x, explain_exactly(value, x).values


def root_mean_square(values: Tensor) -> Tensor:
    return values.square().mean().sqrt()


def actual_and_reported_error(found: list[Attribution], exact: Tensor) -> tuple[Tensor, Tensor]:
    """Root mean squares of the errors and of the standard errors."""
    deviations = torch.stack([each.values - exact for each in found])
    return root_mean_square(deviations), root_mean_square(torch.stack([each.errors for each in found]))


@claim("B17.3-3", "B17.4-1")
def sharing_the_linear_first_layer_is_exact() -> Evidence:
    """W h_x(S) + c = P_x(S) + Q_b(S): worths equal those of mixed rows up to rounding (book sec. 17.3)."""
    value, x, _ = build_example()
    network = nn.Sequential(value.first, value.rest)
    mixed = InterventionalValue(as_model(network), value.background)
    torch.manual_seed(1)
    in_float = nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, 2))
    short = value.background.float()
    return all_of(
        double=close(value(x, all_coalitions(FEATURES)), mixed(x, all_coalitions(FEATURES)), atol=1e-12),
        single=close(
            interventional_value_function(in_float, short)(x.float(), all_coalitions(FEATURES)),
            InterventionalValue(as_model(in_float), short)(x.float(), all_coalitions(FEATURES)),
            atol=1e-6,
        ),
    )


@claim("B17.4-3")
def errors_of_background_rows_average_out() -> Evidence:
    """With separate coalitions for each background row the error is smaller at equal cost (book sec. 17.4)."""
    value, x, exact = build_example()
    errors = {
        name: actual_and_reported_error(
            [
                explain(game, x, 100, solver=weighted_regression, generator=seeded_generator(seed))
                for seed in range(SEEDS)
            ],
            exact,
        )
        for name, game in (("shared", SingleGame(value)), ("separate", value))
    }
    return all_of(
        smaller=less_equal(errors["separate"][0] / errors["shared"][0], 0.7),
        error_is_known=close(errors["separate"][0] / errors["separate"][1], 1.0, rtol=0.15),
    )


@claim("B17.4-1", "B17.4-3")
def regression_adjustment_reduces_the_error() -> Evidence:
    """Estimating only the residuals of a surrogate reduces the error; values remain additive (book sec. 17.4)."""
    value, x, exact = build_example()
    errors = {
        solve: actual_and_reported_error(
            [explain(value, x, 200, solver=solve, generator=seeded_generator(seed)) for seed in range(SEEDS)], exact
        )
        for solve in (weighted_regression, regression_adjustment)
    }
    found = explain(value, x, 200, generator=seeded_generator(0))
    return all_of(
        smaller=less_equal(errors[regression_adjustment][0] / errors[weighted_regression][0], 0.75),
        error_is_known=close(errors[regression_adjustment][0] / errors[regression_adjustment][1], 1.0, rtol=0.15),
        additive=close(found.prediction, value(x, all_coalitions(FEATURES)[-1:])[..., 0], atol=1e-10),
    )


@claim("B17.4-1", "B17.4-3")
def kernel_shap_stops_at_the_tolerance() -> Evidence:
    """No standard error exceeds the tolerance; intervals of ±1 and ±2 standard errors have nominal coverage."""
    value, x, exact = build_example()
    found = [
        explain_to_tolerance(value, x, 0.02, max_coalitions=2**FEATURES, generator=seeded_generator(seed))
        for seed in range(SEEDS)
    ]
    ratios = torch.stack([(each.values - exact).abs() / each.errors for each in found])
    coarse = explain_to_tolerance(value, x, 0.08, max_coalitions=2**FEATURES, generator=seeded_generator(0))
    return all_of(
        tolerance=less_equal(max(max_standard_error(each) for each in found), 0.02),
        within_one=close((ratios < 1).double().mean(), 0.683, atol=0.06),
        within_two=close((ratios < 2).double().mean(), 0.954, atol=0.03),
        smaller_tolerance_costs_more=greater_equal(found[0].evaluations / coarse.evaluations, 1.5),
    )
