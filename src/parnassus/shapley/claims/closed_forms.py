"""Claims about Shapley values in closed form: linear models and trees (book sec. 17.3)."""

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.probability import standard_normal
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.closed_forms.linear_shap import conditional_linear_shap, linear_shap
from parnassus.shapley.closed_forms.tree_leaves import additive_output
from parnassus.shapley.closed_forms.tree_shap import path_dependent_tree_shap, tree_shap

FEATURES = 6


@claim("B17.3-3")
def linear_shap_equals_enumeration() -> Evidence:
    """For linear f the closed forms equal enumeration, interventional and conditional (book sec. 17.3)."""
    weight, bias = standard_normal(2, FEATURES, seed=0), standard_normal(2, seed=1)
    background, x = (
        standard_normal(50, FEATURES, seed=2) @ standard_normal(FEATURES, FEATURES, seed=3),
        standard_normal(5, FEATURES, seed=4),
    )
    model = as_model(lambda z: z @ weight.mT + bias)
    interventional, conditional = (
        explain(weight, bias, x, background) for explain in (linear_shap, conditional_linear_shap)
    )
    spread = torch.diag(standard_normal(FEATURES, seed=5))
    independent = torch.cat([spread, -spread])
    uncorrelated = conditional_linear_shap(weight, bias, x, independent)
    return all_of(
        interventional=close(
            interventional.values, explain_exactly(InterventionalValue(model, background), x).values, atol=1e-11
        ),
        conditional=close(
            conditional.values,
            explain_exactly(ConditionalGaussianValue(model, background, num_draws=2), x).values,
            atol=1e-9,
        ),
        sums=close(conditional.prediction, model(x), atol=1e-9),
        equal_if_uncorrelated=close(uncorrelated.values, linear_shap(weight, bias, x, independent).values, atol=1e-11),
        different_else=greater_equal((interventional.values - conditional.values).abs().max(), 0.1),
    )


@claim("B17.3-3", "B17.2-1")
def tree_shap_equals_enumeration() -> Evidence:
    """Leaf values (|A| − 1)! |B|! / (|A| + |B|)! sum to the Shapley values from all 2^M coalitions (book sec. 17.3)."""
    training = (3 * standard_normal(150, FEATURES, seed=6)).round() / 3  # on a grid: thresholds coincide with values
    target = training[:, 0] * training[:, 1] + training[:, 2].abs()
    forest = RandomForestRegressor(5, random_state=0).fit(training, target)
    boosted = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(training, target.sign())
    x, background = training[:6] + 1 / 3, training[100:]
    of_forest, of_boosted = (tree_shap(model, x, background) for model in (forest, boosted))
    enumerated = [
        explain_exactly(InterventionalValue(additive_output(model), background), x) for model in (forest, boosted)
    ]
    path_dependent = path_dependent_tree_shap(forest, x)
    return all_of(
        forest=close(of_forest.values, enumerated[0].values, atol=1e-10),
        boosted=close(of_boosted.values, enumerated[1].values, atol=1e-10),
        sums=close(of_forest.prediction, as_model(forest)(x), atol=1e-10),
        path_dependent_sums=close(path_dependent.prediction, as_model(forest)(x), atol=1e-10),
        path_dependent_differs=greater_equal((path_dependent.values - of_forest.values).abs().max(), 0.01),
    )


@claim("B17.3-1")
def impurity_importance_is_inconsistent() -> Evidence:
    """A tree that depends more on the cough splits on it first, and its impurity importance falls (book eq. 17.7).

    Fever and cough, each yes or no, add 80 together and the fever 1 alone; the second tree adds 10 for a cough. The
    decrease of impurity credits the feature of the last split.
    """
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    both = np.array([0.0, 0.0, 1.0, 81.0])
    impurity, values = [], []
    for target in (both, both + 10 * rows[:, 1]):
        tree = DecisionTreeRegressor().fit(rows, target)
        impurity.append(float(tree.feature_importances_[1]))
        values.append(tree_shap(tree, torch.tensor(rows), torch.tensor(rows)).values[:, 0])
    added = torch.tensor(10 * (rows[:, 1] - 0.5))
    return all_of(
        cough_gains_its_contribution=close(values[1][:, 1] - values[0][:, 1], added, atol=1e-12),
        fever_is_unchanged=close(values[1][:, 0], values[0][:, 0], atol=1e-12),
        impurity_importance_falls=less_equal(impurity[1], impurity[0] - 0.1),
    )
