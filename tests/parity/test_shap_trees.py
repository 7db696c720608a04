"""Trees: ours equal enumeration, shap's TreeExplainer does not, and why."""

from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from torch import Tensor

from parnassus.shapley import (
    Interventional,
    as_model,
    explain_exactly,
    extract_leaves,
    path_dependent_tree_shap,
    tree_shap,
)
from parnassus.shapley.closed_forms.tree_shap import average_over_pairs

ROWS, OTHERS = 12, 40
SURE = 1e-9


@pytest.fixture(scope="module")
def shap() -> ModuleType:
    found: ModuleType = pytest.importorskip("shap")
    return found


@pytest.fixture(scope="module")
def table() -> Tensor:
    return torch.tensor(load_diabetes().data)


@pytest.fixture(scope="module")
def forest(table: Tensor) -> RandomForestRegressor:
    return RandomForestRegressor(20, random_state=0).fit(table[:300], load_diabetes().target[:300])


@pytest.fixture(scope="module")
def asked(forest: RandomForestRegressor, table: Tensor) -> Tensor:
    """What all 1,024 coalitions say."""
    value = Interventional(as_model(forest), table[:OTHERS])
    return explain_exactly(value, table[300 : 300 + ROWS]).values[:, 0]


def theirs(explainer: object, x: Tensor) -> Tensor:
    return torch.tensor(explainer.shap_values(x.numpy(), check_additivity=False))  # type: ignore[attr-defined]


def test_ours_are_what_all_coalitions_say(forest: RandomForestRegressor, table: Tensor, asked: Tensor) -> None:
    found = tree_shap(forest, table[300 : 300 + ROWS], table[:OTHERS])
    torch.testing.assert_close(found.values[:, 0], asked, atol=SURE, rtol=0)


def test_theirs_are_not_and_do_not_sum_up(
    shap: ModuleType, forest: RandomForestRegressor, table: Tensor, asked: Tensor
) -> None:
    x = table[300 : 300 + ROWS]
    explainer = shap.TreeExplainer(forest, table[:OTHERS].numpy(), feature_perturbation="interventional")
    found = theirs(explainer, x)
    assert float((found - asked).abs().max()) > 0.3
    assert float((found.sum(1) + explainer.expected_value - torch.tensor(forest.predict(x))).abs().max()) > 0.3


def turned(given: Tensor, above: Tensor, upto: Tensor) -> Tensor:
    """Which rows meet which slots, compared as they are given."""
    return (given > above[:, None]) & (given <= upto[:, None])


def test_rounded_thresholds_and_an_unrounded_background_are_why(
    shap: ModuleType, forest: RandomForestRegressor, table: Tensor
) -> None:
    """Ours with their rounding gives their numbers, to the float32 in which they add up."""
    x, background = table[300 : 300 + ROWS], table[:OTHERS]
    found = theirs(shap.TreeExplainer(forest, background.numpy()), x)
    as_theirs = torch.zeros(table.shape[1], ROWS, dtype=torch.float64)
    for block in extract_leaves(forest).blocks(100):
        above, upto = (bound.float().double() for bound in (block.above, block.upto))  # scikit-learn does not
        x_meets = turned(x.float().double().mT[block.feature].mT, above, upto)
        b_meets = turned(background.mT[block.feature].mT, above, upto)  # scikit-learn rounds these to float32
        parts = average_over_pairs(x_meets, b_meets) * block.value[:, :1, None]
        as_theirs.index_add_(0, block.feature.flatten(), parts.mT.flatten(0, 1))
    torch.testing.assert_close(as_theirs.mT, found, atol=1e-4, rtol=0)


def test_thresholds_fall_on_values_because_features_lie_on_a_grid(forest: RandomForestRegressor, table: Tensor) -> None:
    """Half way between two ages is an age: some thresholds lie within float32's rounding of a value."""
    rounded = table.float().numpy()
    wrong = total = 0
    for tree in (own.tree_ for own in forest.estimators_):
        for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
            if feature >= 0:
                column = rounded[:, feature].astype(np.float64)
                wrong += bool(((column <= threshold) != (column <= np.float32(threshold))).any())
                total += 1
    assert 0.02 < wrong / total < 0.2


def test_where_nothing_is_near_a_threshold_they_agree(shap: ModuleType) -> None:
    """Off any grid only their float32 sums are left."""
    source = torch.Generator().manual_seed(0)
    x = torch.rand(200, 6, generator=source).double()
    forest = RandomForestRegressor(5, random_state=0).fit(x[:150], (x[:150, 0] * x[:150, 1] + x[:150, 2]).numpy())
    found = theirs(shap.TreeExplainer(forest, x[:50].numpy()), x[150:])
    torch.testing.assert_close(tree_shap(forest, x[150:], x[:50]).values[:, 0], found, atol=1e-6, rtol=0)


def test_a_large_background_is_cut_to_a_hundred_rows(
    shap: ModuleType, forest: RandomForestRegressor, table: Tensor
) -> None:
    """Without a warning; a masker that is told otherwise keeps all."""
    silent, told = (
        shap.TreeExplainer(forest, given)
        for given in (table[:300].numpy(), shap.maskers.Independent(table[:300].numpy(), max_samples=300))
    )
    base = float(forest.predict(table[:300]).mean())
    assert abs(float(silent.expected_value) - base) > 0.5
    assert float(told.expected_value) == pytest.approx(base, abs=1e-9)
    assert float(tree_shap(forest, table[300:302], table[:300]).base_values[0, 0]) == pytest.approx(base, abs=1e-9)


def test_path_dependent_values_agree(shap: ModuleType, forest: RandomForestRegressor, table: Tensor) -> None:
    """That code of theirs keeps thresholds in float64."""
    x = table[300 : 300 + ROWS]
    found = theirs(shap.TreeExplainer(forest), x)
    torch.testing.assert_close(path_dependent_tree_shap(forest, x).values[:, 0], found, atol=SURE, rtol=0)
