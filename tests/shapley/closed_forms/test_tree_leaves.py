"""Trees as lists of leaves: boxes cover the feature space, each row is in one leaf of every tree."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from parnassus.probability import standard_normal
from parnassus.shapley.attributions.model_adapters import ModelError
from parnassus.shapley.closed_forms.tree_leaves import additive_output, estimator_offset, extract_leaves

X, TRAINING = standard_normal(40, 3), standard_normal(60, 3, seed=1)
TARGET = TRAINING[:, 0] * TRAINING[:, 1]


def test_leaves_of_a_small_tree() -> None:
    """Three leaves, x ≤ 0, 0 < x ≤ 1 and x > 1, of one slot each, although two splits lead to the middle one."""
    x = np.array([[-0.5], [0.5], [0.5], [1.5]])
    leaves = extract_leaves(DecisionTreeRegressor().fit(x, [3.0, 5.0, 5.0, 9.0]))
    order = leaves.value[:, 0].argsort()
    assert leaves.lower[order, 0].tolist() == [-torch.inf, 0.0, 1.0]
    assert leaves.upper[order, 0].tolist() == [0.0, 1.0, torch.inf]
    assert leaves.cover[order, 0].tolist() == pytest.approx([0.25, 0.5, 0.25])
    assert leaves.num_slots.tolist() == [1, 1, 1]


def test_every_row_reaches_one_leaf_of_every_tree() -> None:
    forest = RandomForestClassifier(7, random_state=0).fit(TRAINING, TARGET > 0)
    leaves = extract_leaves(forest)
    reached = torch.cat([block.is_met_by(X).all(-1) for block in leaves.blocks(5)])
    assert reached.sum(0).tolist() == [7] * len(X)
    assert float(leaves.cover.prod(1).sum()) == pytest.approx(7)  # fractions of the training rows
    assert torch.allclose(leaves.predict(X), additive_output(forest)(X), atol=1e-14)


def test_blocks_have_no_empty_slots() -> None:
    leaves = extract_leaves(DecisionTreeRegressor(random_state=0).fit(TRAINING, TARGET))
    for block in leaves.blocks(4):
        assert len(block.value) <= 4
        assert block.num_slots.tolist() == [block.feature.shape[1]] * len(block.value)
        assert bool((block.lower.isfinite() | block.upper.isfinite()).all())


def test_estimator_offset_of_boosting_and_of_other_estimators() -> None:
    boosted = GradientBoostingRegressor(n_estimators=5).fit(TRAINING, TARGET + 10)
    assert float(estimator_offset(extract_leaves(boosted), boosted, X)[0]) == pytest.approx(float(TARGET.mean()) + 10)
    with_init = GradientBoostingRegressor(n_estimators=5, init=LinearRegression()).fit(TRAINING, TARGET)
    with pytest.raises(ModelError, match="neither the sum nor the mean"):
        estimator_offset(extract_leaves(with_init), with_init, X)
    tree = DecisionTreeRegressor().fit(TRAINING, torch.stack([TARGET, TARGET], 1))
    with pytest.raises(ModelError, match="leaves have 2 outputs, GradientBoostingRegressor has 1"):
        estimator_offset(extract_leaves(tree), boosted, X)
