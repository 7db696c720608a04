"""Convergence of estimators of Shapley values with the budget (book sec. 17.4)."""

from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.shapley.estimators.estimate import Estimator, ShapleyEstimate
from parnassus.shapley.estimators.kernel_shap import kernel_shap
from parnassus.shapley.estimators.permutation_sampling import balanced_permutation_sampling, permutation_sampling
from parnassus.shapley.estimators.stratified_sampling import stratified_sampling
from parnassus.shapley.games.cooperative_games import all_coalitions, characteristic_function
from parnassus.shapley.games.shapley_values import shapley_values
from parnassus.widgets import Answer, Bars, Curves, IntSlider, Numbers, Select

ESTIMATORS: dict[str, Estimator] = {
    "permutations": permutation_sampling,
    "antithetic permutations": partial(permutation_sampling, antithetic=True),
    "balanced permutations": balanced_permutation_sampling,
    "stratified by size": stratified_sampling,
    "Kernel SHAP": kernel_shap,
}
MAX_BUDGET, STEPS = 3_000, 6  # coalitions, and steps of the budget up to it
MIN_ERROR = 1e-5  # plotted instead of 0 on a logarithmic axis


def _game(features: int) -> Tensor:
    """A game whose worth is a small network of the known features."""
    generator = torch.Generator().manual_seed(0)
    hidden, readout = torch.randn(features, 8, generator=generator), torch.randn(8, generator=generator)
    return ((all_coalitions(features).float() @ hidden).tanh() @ readout).double()


def _min_budget(name: str, features: int) -> int:
    """Smallest budget for which an estimator has standard errors."""
    if name == "stratified by size":
        return 2 * features * (1 + 2 * (features - 2))
    return 4 * features


@probe()
def compare_estimators(
    *,
    budget: Annotated[int, IntSlider("budget in coalitions", 10, MAX_BUDGET)] = 250,
    estimator: Annotated[int, Select("estimator", tuple(ESTIMATORS))] = 0,
    features: Annotated[int, IntSlider("features", 3, 12)] = 10,
    seed: Annotated[int, IntSlider("seed", 0, 99)] = 0,
) -> list[Answer]:
    """Estimated Shapley values with error bars, and exact values (book sec. 17.4).

    With another seed the estimates change, and most error bars cover the exact value. Four times the budget halves the
    error bars. Antithetic and balanced permutations have smaller errors. Kernel SHAP evaluates no coalition twice and
    is exact once the budget contains all coalitions.
    """
    worth = _game(features)
    exact = shapley_values(worth - worth[0])
    name = list(ESTIMATORS)[estimator]
    min_budget = _min_budget(name, features)

    def estimate(count: int) -> ShapleyEstimate:
        generator = torch.Generator().manual_seed(seed)
        return ESTIMATORS[name](characteristic_function(worth), features, max(min_budget, count), generator=generator)

    found = estimate(budget)
    budgets = [round(min_budget * (MAX_BUDGET / min_budget) ** (step / STEPS)) for step in range(STEPS + 1)]
    line = [estimate(count) for count in budgets]
    x = [float(count) for count in budgets]
    actual = [float((each.values - exact).square().mean().sqrt().clamp(min=MIN_ERROR)) for each in line]
    reported = [float(each.errors.square().mean().sqrt().clamp(min=MIN_ERROR)) for each in line]
    within = int(((found.values - exact).abs() <= 2 * found.errors + 1e-9).sum())
    return [
        Bars(
            "Estimated and exact Shapley values",
            [f"feature {index + 1}" for index in range(features)],
            found.values,
            about="Error bars are ± two standard errors; the mark is the exact value.",
            errors=2 * found.errors,
            truth=exact,
        ),
        Curves(
            "Error against budget",
            {"actual error": (x, actual), "standard error": (x, reported)},
            x_label="budget in coalitions",
            y_label="root mean square error",
            log_y=True,
            marked=float(max(min_budget, budget)),
        ),
        Numbers(
            "Values",
            {
                "budget, at least the minimum of the estimator": float(max(min_budget, budget)),
                "number of coalitions": float(2**features),
                "actual error, root mean square": float((found.values - exact).square().mean().sqrt()),
                "standard error, root mean square": float(found.errors.square().mean().sqrt()),
                "values within two standard errors": f"{within} of {features}",
                "efficiency gap": float((found.values.sum() - worth[-1] + worth[0]).abs()),
            },
        ),
    ]
