"""Claims about models whose Shapley values need no coalitions: linear ones and trees (book sec. 17.3)."""

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.shapley.attribution import explain_exactly
from parnassus.shapley.leaves import said_by_trees
from parnassus.shapley.linear import explain_linear, explain_linear_given
from parnassus.shapley.masking import ConditionalGaussian, Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.trees import explain_trees, explain_trees_by_cover

FEATURES = 6


def normals(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("B17.3-3")
def linear_models_need_no_coalitions() -> Evidence:
    """For linear f, w (x − E x), and regressions where features correlate, are what coalitions say (book sec. 17.3)."""
    weight, bias = normals(2, FEATURES, seed=0), normals(2, seed=1)
    background, x = normals(50, FEATURES, seed=2) @ normals(FEATURES, FEATURES, seed=3), normals(5, FEATURES, seed=4)
    model = as_model(lambda z: z @ weight.mT + bias)
    apart, given = (explain(weight, bias, x, background) for explain in (explain_linear, explain_linear_given))
    spread = torch.diag(normals(FEATURES, seed=5))
    independent = torch.cat([spread, -spread])
    alone = explain_linear_given(weight, bias, x, independent)
    return all_of(
        interventional=close(apart.values, explain_exactly(Interventional(model, background), x).values, atol=1e-11),
        conditional=close(
            given.values, explain_exactly(ConditionalGaussian(model, background, draws=2), x).values, atol=1e-9
        ),
        sums=close(given.prediction, model(x), atol=1e-9),
        alike_if_independent=close(alone.values, explain_linear(weight, bias, x, independent).values, atol=1e-11),
        else_not=at_least((apart.values - given.values).abs().max(), 0.1),
    )


@claim("B17.3-3", "B17.2-1")
def forests_need_no_coalitions() -> Evidence:
    """Leaf by leaf, (|A| − 1)! |B|! / (|A| + |B|)! is what all 2^M coalitions say of a forest (book sec. 17.3)."""
    training = (3 * normals(150, FEATURES, seed=6)).round() / 3  # on a grid, thresholds fall on values
    target = training[:, 0] * training[:, 1] + training[:, 2].abs()
    forest = RandomForestRegressor(5, random_state=0).fit(training, target)
    boosted = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(training, target.sign())
    x, background = training[:6] + 1 / 3, training[100:]
    forest_parts, boosted_parts = (explain_trees(model, x, background) for model in (forest, boosted))
    asked = [explain_exactly(Interventional(said_by_trees(model), background), x) for model in (forest, boosted)]
    covered = explain_trees_by_cover(forest, x)
    return all_of(
        forest=close(forest_parts.values, asked[0].values, atol=1e-10),
        boosted=close(boosted_parts.values, asked[1].values, atol=1e-10),
        sums=close(forest_parts.prediction, as_model(forest)(x), atol=1e-10),
        covers_sum=close(covered.prediction, as_model(forest)(x), atol=1e-10),
        covers_are_another_game=at_least((covered.values - forest_parts.values).abs().max(), 0.01),
    )


@claim("B17.3-1")
def impurity_is_not_consistent_and_shapley_values_are() -> Evidence:
    """A tree that leans more on the cough asks for it first, and is then said to need it less (book eq. 17.7).

    Fever and cough, each yes or no, make 80 together and the fever 1 by itself; the second tree adds 10 for a cough.
    What is shared out by the drop of impurity goes to the question that is asked last.
    """
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    both = np.array([0.0, 0.0, 1.0, 81.0])
    impurity, parts = [], []
    for target in (both, both + 10 * rows[:, 1]):
        tree = DecisionTreeRegressor().fit(rows, target)
        impurity.append(float(tree.feature_importances_[1]))
        parts.append(explain_trees(tree, torch.tensor(rows), torch.tensor(rows)).values[:, 0])
    added = torch.tensor(10 * (rows[:, 1] - 0.5))
    return all_of(
        cough_gets_what_it_adds=close(parts[1][:, 1] - parts[0][:, 1], added, atol=1e-12),
        fever_keeps_its_own=close(parts[1][:, 0], parts[0][:, 0], atol=1e-12),
        share_of_impurity_falls=at_most(impurity[1], impurity[0] - 0.1),
    )
