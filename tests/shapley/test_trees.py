"""Trees explained leaf by leaf: the same as asking the model about every mixture of rows."""

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

from parnassus.shapley import trees
from parnassus.shapley.attribution import explain_exactly
from parnassus.shapley.game import members
from parnassus.shapley.leaves import HasTree, Nodes, said_by_trees
from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.trees import by_pairs, by_patterns, explain_trees, explain_trees_by_cover, of_products
from parnassus.shapley.values import shapley_values

FEATURES = 5
SEED = {"random_state": 0}


def rows(count: int, *, seed: int = 0) -> Tensor:
    """On a coarse grid, so that thresholds lie between values that occur, and rows share leaves."""
    drawn = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (drawn * 3).round() / 3


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
@pytest.mark.parametrize("others", [1, 9])
def test_leaves_say_what_every_coalition_says(name: str, others: int) -> None:
    model, background = MODELS[name](), BACKGROUND[:others]
    found = explain_trees(model, X, background)
    asked = explain_exactly(Interventional(said_by_trees(model), background), X)
    assert torch.allclose(found.values, asked.values, atol=1e-11)
    assert torch.allclose(found.base, asked.base, atol=1e-11)
    assert torch.allclose(found.prediction, said_by_trees(model)(X), atol=1e-11)


def worth_by_cover(nodes: Nodes, x: Tensor, known: Tensor, node: int = 0) -> float:
    """The mean over both children where their question cannot be answered, by the training rows that went each way."""
    left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
    if left < 0:
        return float(nodes.value[node, 0, 0])
    feature = int(nodes.feature[node])
    if known[feature]:
        return worth_by_cover(nodes, x, known, left if x[feature] <= nodes.threshold[node] else right)
    weight = nodes.weighted_n_node_samples
    both = weight[left] * worth_by_cover(nodes, x, known, left) + weight[right] * worth_by_cover(nodes, x, known, right)
    return float(both / weight[node])


def test_covers_stand_in_for_a_background() -> None:
    forest = RandomForestRegressor(4, **SEED).fit(TRAINING, TARGET)
    given: list[Nodes] = [tree.tree_ for tree in forest.estimators_]
    worth = torch.tensor(
        [
            [sum(worth_by_cover(nodes, x, known) for nodes in given) / 4 for known in members(FEATURES)]
            for x in X.float()
        ],
        dtype=torch.float64,
    )
    found = explain_trees_by_cover(forest, X)
    assert torch.allclose(found.values[:, 0], shapley_values(worth - worth[:, :1]), atol=1e-12)
    assert torch.allclose(found.base[:, 0], worth[:, 0], atol=1e-12)


def test_products_are_shared_as_all_coalitions_say() -> None:
    absent, present = torch.rand(2, 3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    worth = torch.where(members(6), present[:, None], absent[:, None]).prod(-1)
    assert torch.allclose(of_products(absent, present), shapley_values(worth - worth[:, :1]), atol=1e-14)


def test_patterns_and_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = torch.Generator().manual_seed(0)
    x_meets, b_meets = (torch.rand(6, count, 4, generator=source) < 0.6 for count in (5, 7))
    whole = by_pairs(x_meets, b_meets)
    assert torch.allclose(by_patterns(x_meets, b_meets), whole, atol=1e-15)
    forest = MODELS["classes"]()
    expected, covered = explain_trees(forest, X, BACKGROUND), explain_trees_by_cover(forest, X)
    monkeypatch.setattr(trees, "PAIRS", 20)
    monkeypatch.setattr(trees, "TOGETHER", 20)
    assert torch.allclose(by_pairs(x_meets, b_meets), whole, atol=1e-15)
    for most in (0, 10):
        monkeypatch.setattr(trees, "MOST", most)
        assert torch.allclose(explain_trees(forest, X, BACKGROUND).values, expected.values, atol=1e-13)
    assert torch.allclose(explain_trees_by_cover(forest, X).values, covered.values, atol=1e-13)


def test_a_row_on_a_threshold_goes_where_the_model_sends_it() -> None:
    """4 and 4 + 2⁻²¹ are neighbours in float32, the threshold between them is none: a row is rounded, it is not."""
    step = 2.0**-21
    tree = DecisionTreeRegressor().fit(np.array([[4.0], [4 + step]]), np.array([0.0, 1.0]))
    near = 4 + step * torch.tensor([0, 0.4, 0.5, 0.6, 1], dtype=torch.float64)[:, None]
    found = explain_trees(tree, near, near)
    assert found.prediction[:, 0].tolist() == tree.predict(near.numpy()).tolist() == [0, 0, 0, 1, 1]


def test_missing_values_go_the_way_they_went_in_training() -> None:
    training, x = TRAINING.clone(), X.clone()
    training[::3, 0] = x[::2, 0] = torch.nan
    tree = DecisionTreeRegressor(**SEED).fit(training, TARGET)
    found = explain_trees(tree, x, training[:9])
    asked = explain_exactly(Interventional(as_model(tree), training[:9]), x)
    assert torch.allclose(found.values, asked.values, atol=1e-12)


def test_one_feature_gets_all_and_a_constant_one_nothing() -> None:
    tree = DecisionTreeRegressor(**SEED).fit(TRAINING[:, :1], TARGET)
    one = explain_trees(tree, X[:, :1], BACKGROUND[:, :1])
    assert torch.allclose(one.values[..., 0], one.prediction - one.base)
    constant = TRAINING.clone()
    constant[:, 2] = 7.0
    forest = RandomForestRegressor(3, **SEED).fit(constant, TARGET)
    assert float(explain_trees(forest, X, BACKGROUND).values[..., 2].abs().max()) == 0.0


def test_what_is_no_sum_of_trees_gets_a_sentence() -> None:
    with pytest.raises(TypeError, match="once fitted; got LinearRegression"):
        explain_trees(LinearRegression().fit(TRAINING, TARGET), X, BACKGROUND)
    with pytest.raises(TypeError, match="once fitted"):
        explain_trees(DecisionTreeRegressor(), X, BACKGROUND)
    with pytest.raises(TypeError, match="other things than trees"):
        explain_trees(BaggingRegressor(KNeighborsRegressor(), 2).fit(TRAINING, TARGET), X, BACKGROUND)
    with pytest.raises(RuntimeError, match="neither the sum nor the mean of its trees"):
        explain_trees(AdaBoostRegressor(n_estimators=5, **SEED).fit(TRAINING, TARGET), X, BACKGROUND)
    two = DecisionTreeClassifier(max_depth=2).fit(TRAINING, torch.stack([CLASS, CLASS], 1))
    with pytest.raises(RuntimeError, match="classifier of 2 targets"):
        explain_trees(two, X, BACKGROUND)
    tree = DecisionTreeRegressor(**SEED).fit(TRAINING, TARGET)
    assert isinstance(tree, HasTree)
    with pytest.raises(ValueError, match=r"rows of features are needed; got shape \(0, 5\)"):
        explain_trees(tree, X, BACKGROUND[:0])
    with pytest.raises(ValueError, match="4 features"):
        explain_trees(tree, X[:, :4], BACKGROUND[:, :4])
    weightless = DecisionTreeRegressor(**SEED).fit(TRAINING, TARGET, sample_weight=(TARGET > 0).numpy())
    assert torch.allclose(
        explain_trees(weightless, X, BACKGROUND).prediction[:, 0], torch.tensor(weightless.predict(X))
    )
    with pytest.raises(ValueError, match="rows of features are needed"):
        explain_trees_by_cover(tree, X[:0])
