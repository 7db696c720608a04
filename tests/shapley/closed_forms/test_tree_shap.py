"""Tree SHAP equals enumeration over all mixtures of rows."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from torch import Tensor

from parnassus.probability import standard_normal, uniform_samples
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.closed_forms import tree_shap as tree_shap_module
from parnassus.shapley.closed_forms.tree_leaves import HasTree, TreeNodes, additive_output
from parnassus.shapley.closed_forms.tree_shap import (
    average_over_pairs,
    average_over_patterns,
    path_dependent_tree_shap,
    product_game_shapley_values,
    tree_shap,
)
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values

FEATURES = 5
SEED = {"random_state": 0}


def rows(count: int, *, seed: int = 0) -> Tensor:
    """Rows on a coarse grid, so that thresholds lie between values and rows share leaves."""
    values = standard_normal(count, FEATURES, seed=seed)
    return (values * 3).round() / 3


X, BACKGROUND, TRAINING = rows(7), rows(9, seed=1), rows(80, seed=2)
TARGET = TRAINING[:, 0] * TRAINING[:, 1] + TRAINING[:, 2].sin() - TRAINING[:, 3].abs()
CLASS = TARGET.sign().long() + (TRAINING[:, 4] > 0)
MODELS: dict[str, Callable[[], object]] = {
    "tree": lambda: DecisionTreeRegressor(**SEED).fit(TRAINING, TARGET),
    "stump": lambda: DecisionTreeRegressor(max_depth=1).fit(TRAINING, TARGET),
    "leaf": lambda: DecisionTreeRegressor(min_samples_leaf=80).fit(TRAINING, TARGET),
    "targets": lambda: DecisionTreeRegressor(**SEED).fit(TRAINING, torch.stack([TARGET, TRAINING[:, 4] ** 2], 1)),
    "forest": lambda: RandomForestRegressor(5, **SEED).fit(TRAINING, TARGET),
    "classes": lambda: DecisionTreeClassifier(max_leaf_nodes=9, **SEED).fit(TRAINING, CLASS),
    "extra": lambda: ExtraTreesClassifier(4, **SEED).fit(TRAINING, CLASS),
    "boosted": lambda: GradientBoostingRegressor(n_estimators=8, **SEED).fit(TRAINING, TARGET),
    "boosted classes": lambda: GradientBoostingClassifier(n_estimators=5, **SEED).fit(TRAINING, CLASS),
    "boosted sign": lambda: GradientBoostingClassifier(n_estimators=5, init="zero", **SEED).fit(TRAINING, TARGET > 0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [1, 9])
def test_tree_shap_matches_enumeration(name: str, count: int) -> None:
    model, background = MODELS[name](), BACKGROUND[:count]
    result = tree_shap(model, X, background)
    enumerated = explain_exactly(InterventionalValue(additive_output(model), background), X)
    assert torch.allclose(result.values, enumerated.values, atol=1e-11)
    assert torch.allclose(result.base_values, enumerated.base_values, atol=1e-11)
    assert torch.allclose(result.prediction, additive_output(model)(X), atol=1e-11)


def worth_by_cover(nodes: TreeNodes, x: Tensor, known: Tensor, node: int = 0) -> float:
    """The expectation given known features; unknown splits are averaged by the training rows of each child."""
    left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
    if left < 0:
        return float(nodes.value[node, 0, 0])
    feature = int(nodes.feature[node])
    if known[feature]:
        return worth_by_cover(nodes, x, known, left if x[feature] <= nodes.threshold[node] else right)
    weight = nodes.weighted_n_node_samples
    weighted_sum = weight[left] * worth_by_cover(nodes, x, known, left) + weight[right] * worth_by_cover(
        nodes, x, known, right
    )
    return float(weighted_sum / weight[node])


def test_path_dependent_values_match_enumeration() -> None:
    forest = RandomForestRegressor(4, **SEED).fit(TRAINING, TARGET)
    trees: list[TreeNodes] = [tree.tree_ for tree in forest.estimators_]
    worth = torch.tensor(
        [
            [sum(worth_by_cover(nodes, x, known) for nodes in trees) / 4 for known in all_coalitions(FEATURES)]
            for x in X.float()
        ],
        dtype=torch.float64,
    )
    result = path_dependent_tree_shap(forest, X)
    assert torch.allclose(result.values[:, 0], shapley_values(worth - worth[:, :1]), atol=1e-12)
    assert torch.allclose(result.base_values[:, 0], worth[:, 0], atol=1e-12)


def test_product_game_values_match_enumeration() -> None:
    absent, present = uniform_samples(2, 3, 6)
    worth = torch.where(all_coalitions(6), present[:, None], absent[:, None]).prod(-1)
    assert torch.allclose(
        product_game_shapley_values(absent, present), shapley_values(worth - worth[:, :1]), atol=1e-14
    )


def test_patterns_and_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    x_meets, b_meets = (torch.rand(6, count, 4, generator=generator) < 0.6 for count in (5, 7))
    averaged = average_over_pairs(x_meets, b_meets)
    assert torch.allclose(average_over_patterns(x_meets, b_meets), averaged, atol=1e-15)
    forest = MODELS["classes"]()
    expected, path_dependent = tree_shap(forest, X, BACKGROUND), path_dependent_tree_shap(forest, X)
    monkeypatch.setattr(tree_shap_module, "PAIRS_PER_BATCH", 20)
    monkeypatch.setattr(tree_shap_module, "LEAF_ROWS_PER_BATCH", 20)
    assert torch.allclose(average_over_pairs(x_meets, b_meets), averaged, atol=1e-15)
    for limit in (0, 10):
        monkeypatch.setattr(tree_shap_module, "MAX_PATTERN_SLOTS", limit)
        assert torch.allclose(tree_shap(forest, X, BACKGROUND).values, expected.values, atol=1e-13)
    assert torch.allclose(path_dependent_tree_shap(forest, X).values, path_dependent.values, atol=1e-13)


def test_rows_at_a_threshold_follow_the_model() -> None:
    """4 and 4 + 2⁻²¹ are adjacent in float32; rows are rounded to float32, the threshold between them is not."""
    step = 2.0**-21
    tree = DecisionTreeRegressor().fit(np.array([[4.0], [4 + step]]), np.array([0.0, 1.0]))
    near = 4 + step * torch.tensor([0, 0.4, 0.5, 0.6, 1], dtype=torch.float64)[:, None]
    result = tree_shap(tree, near, near)
    assert result.prediction[:, 0].tolist() == tree.predict(near.numpy()).tolist() == [0, 0, 0, 1, 1]


def test_missing_values_follow_their_direction_in_training() -> None:
    training, x = TRAINING.clone(), X.clone()
    training[::3, 0] = x[::2, 0] = torch.nan
    tree = DecisionTreeRegressor(**SEED).fit(training, TARGET)
    result = tree_shap(tree, x, training[:9])
    enumerated = explain_exactly(InterventionalValue(as_model(tree), training[:9]), x)
    assert torch.allclose(result.values, enumerated.values, atol=1e-12)


def test_single_feature_and_constant_feature() -> None:
    tree = DecisionTreeRegressor(**SEED).fit(TRAINING[:, :1], TARGET)
    single = tree_shap(tree, X[:, :1], BACKGROUND[:, :1])
    assert torch.allclose(single.values[..., 0], single.prediction - single.base_values)
    constant = TRAINING.clone()
    constant[:, 2] = 7.0
    forest = RandomForestRegressor(3, **SEED).fit(constant, TARGET)
    assert float(tree_shap(forest, X, BACKGROUND).values[..., 2].abs().max()) == 0.0


def test_invalid_models_raise_errors() -> None:
    with pytest.raises(TypeError, match=r"must be a fitted tree .*got LinearRegression"):
        tree_shap(LinearRegression().fit(TRAINING, TARGET), X, BACKGROUND)
    with pytest.raises(TypeError, match="must be a fitted tree"):
        tree_shap(DecisionTreeRegressor(), X, BACKGROUND)
    with pytest.raises(TypeError, match="must all be trees"):
        tree_shap(BaggingRegressor(KNeighborsRegressor(), 2).fit(TRAINING, TARGET), X, BACKGROUND)
    with pytest.raises(RuntimeError, match="neither the sum nor the mean of its trees"):
        tree_shap(AdaBoostRegressor(n_estimators=5, **SEED).fit(TRAINING, TARGET), X, BACKGROUND)
    two_targets = DecisionTreeClassifier(max_depth=2).fit(TRAINING, torch.stack([CLASS, CLASS], 1))
    with pytest.raises(RuntimeError, match="classifier of 2 targets"):
        tree_shap(two_targets, X, BACKGROUND)
    tree = DecisionTreeRegressor(**SEED).fit(TRAINING, TARGET)
    assert isinstance(tree, HasTree)
    with pytest.raises(ValueError, match=r"rows of features are needed; got shape \(0, 5\)"):
        tree_shap(tree, X, BACKGROUND[:0])
    with pytest.raises(ValueError, match="4 features"):
        tree_shap(tree, X[:, :4], BACKGROUND[:, :4])
    weightless = DecisionTreeRegressor(**SEED).fit(TRAINING, TARGET, sample_weight=(TARGET > 0).numpy())
    assert torch.allclose(tree_shap(weightless, X, BACKGROUND).prediction[:, 0], torch.tensor(weightless.predict(X)))
    with pytest.raises(ValueError, match="rows of features are needed"):
        path_dependent_tree_shap(tree, X[:0])
