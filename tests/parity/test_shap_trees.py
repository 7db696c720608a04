"""Tree SHAP against enumeration and shap's TreeExplainer, and the reason for its deviations."""

from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor

from parnassus.shapley import (
    InterventionalValue,
    as_model,
    explain_exactly,
    extract_leaves,
    path_dependent_tree_shap,
    tree_shap,
)
from parnassus.shapley.closed_forms.tree_shap import average_over_pairs

ROWS, BACKGROUND_ROWS = 12, 40
TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def shap() -> ModuleType:
    module: ModuleType = pytest.importorskip("shap")
    return module


@pytest.fixture(scope="module")
def features() -> Tensor:
    return torch.tensor(load_diabetes().data)


@pytest.fixture(scope="module")
def forest(features: Tensor) -> RandomForestRegressor:
    return RandomForestRegressor(20, random_state=0).fit(features[:300], load_diabetes().target[:300])


@pytest.fixture(scope="module")
def expected(forest: RandomForestRegressor, features: Tensor) -> Tensor:
    """Shapley values by enumeration of all 1,024 coalitions."""
    value = InterventionalValue(as_model(forest), features[:BACKGROUND_ROWS])
    return explain_exactly(value, features[300 : 300 + ROWS]).values[:, 0]


def tree_explainer_values(explainer: object, x: Tensor) -> Tensor:
    return torch.tensor(explainer.shap_values(x.numpy(), check_additivity=False))  # type: ignore[attr-defined]


def test_tree_shap_matches_enumeration(forest: RandomForestRegressor, features: Tensor, expected: Tensor) -> None:
    actual = tree_shap(forest, features[300 : 300 + ROWS], features[:BACKGROUND_ROWS])
    torch.testing.assert_close(actual.values[:, 0], expected, atol=TOLERANCE, rtol=0)


def test_shap_deviates_from_enumeration_and_is_not_additive(
    shap: ModuleType, forest: RandomForestRegressor, features: Tensor, expected: Tensor
) -> None:
    x = features[300 : 300 + ROWS]
    explainer = shap.TreeExplainer(forest, features[:BACKGROUND_ROWS].numpy(), feature_perturbation="interventional")
    reference = tree_explainer_values(explainer, x)
    assert float((reference - expected).abs().max()) > 0.3
    assert float((reference.sum(1) + explainer.expected_value - torch.tensor(forest.predict(x))).abs().max()) > 0.3


def satisfies_bounds(values: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Which rows satisfy which bounds, compared in the given precision."""
    return (values > lower[:, None]) & (values <= upper[:, None])


def test_deviation_of_shap_is_due_to_float32_thresholds_and_float64_background(
    shap: ModuleType, forest: RandomForestRegressor, features: Tensor
) -> None:
    """With the same rounding, tree SHAP matches shap up to its float32 sums."""
    x, background = features[300 : 300 + ROWS], features[:BACKGROUND_ROWS]
    reference = tree_explainer_values(shap.TreeExplainer(forest, background.numpy()), x)
    actual = torch.zeros(features.shape[1], ROWS, dtype=torch.float64)
    for block in extract_leaves(forest).blocks(100):
        lower, upper = (bound.float().double() for bound in (block.lower, block.upper))  # scikit-learn keeps float64
        x_satisfies = satisfies_bounds(x.float().double().mT[block.feature].mT, lower, upper)
        background_satisfies = satisfies_bounds(
            background.mT[block.feature].mT, lower, upper
        )  # scikit-learn rounds these to float32
        contributions = average_over_pairs(x_satisfies, background_satisfies) * block.value[:, :1, None]
        actual.index_add_(0, block.feature.flatten(), contributions.mT.flatten(0, 1))
    torch.testing.assert_close(actual.mT, reference, atol=1e-4, rtol=0)


def test_some_thresholds_round_to_values_of_the_data(forest: RandomForestRegressor, features: Tensor) -> None:
    """Features lie on a grid, so some midpoints lie within float32 rounding of a value."""
    rounded = features.float().numpy()
    changed = total = 0
    for tree in (estimator.tree_ for estimator in forest.estimators_):
        for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
            if feature >= 0:
                column = rounded[:, feature].astype(np.float64)
                changed += bool(((column <= threshold) != (column <= np.float32(threshold))).any())
                total += 1
    assert 0.02 < changed / total < 0.2


def test_matches_shap_without_values_near_thresholds(shap: ModuleType) -> None:
    """For continuous features only the error of shap's float32 sums remains."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(200, 6, generator=generator).double()
    forest = RandomForestRegressor(5, random_state=0).fit(x[:150], (x[:150, 0] * x[:150, 1] + x[:150, 2]).numpy())
    reference = tree_explainer_values(shap.TreeExplainer(forest, x[:50].numpy()), x[150:])
    torch.testing.assert_close(tree_shap(forest, x[150:], x[:50]).values[:, 0], reference, atol=1e-6, rtol=0)


def test_shap_truncates_a_large_background_to_a_hundred_rows(
    shap: ModuleType, forest: RandomForestRegressor, features: Tensor
) -> None:
    """Without a warning; a masker with a larger `max_samples` keeps all rows."""
    truncated, complete = (
        shap.TreeExplainer(forest, background)
        for background in (features[:300].numpy(), shap.maskers.Independent(features[:300].numpy(), max_samples=300))
    )
    base = float(forest.predict(features[:300]).mean())
    assert abs(float(truncated.expected_value) - base) > 0.5
    assert float(complete.expected_value) == pytest.approx(base, abs=1e-9)
    assert float(tree_shap(forest, features[300:302], features[:300]).base_values[0, 0]) == pytest.approx(
        base, abs=1e-9
    )


def test_path_dependent_values_match_shap(shap: ModuleType, forest: RandomForestRegressor, features: Tensor) -> None:
    """This algorithm of shap keeps thresholds in float64."""
    x = features[300 : 300 + ROWS]
    reference = tree_explainer_values(shap.TreeExplainer(forest), x)
    torch.testing.assert_close(path_dependent_tree_shap(forest, x).values[:, 0], reference, atol=TOLERANCE, rtol=0)
