"""Shapley values: how much each player contributes to a game, and each feature to a prediction."""

from parnassus.shapley.attributions.adaptive_kernel_shap import explain_to_tolerance
from parnassus.shapley.attributions.attribution import Attribution, average_repeats, explain, explain_exactly
from parnassus.shapley.attributions.batching import limit_batch_size
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.estimator_explanations import (
    explain_with_estimator,
    explain_with_estimator_to_tolerance,
)
from parnassus.shapley.attributions.interventional import InterventionalValue, mean_imputation
from parnassus.shapley.attributions.linear_first_layer import LinearFirstLayer, interventional_value_function
from parnassus.shapley.attributions.masked_images import (
    expand_group_values,
    flat_image_model,
    gaussian_blur,
    masked_images,
    pixel_groups,
)
from parnassus.shapley.attributions.masked_text import MaskedText, masked_ids, masked_words
from parnassus.shapley.attributions.model_adapters import ModelError, as_model
from parnassus.shapley.attributions.superpixels import superpixels, tiles
from parnassus.shapley.attributions.value_functions import BackgroundAverage, ValueFunction
from parnassus.shapley.closed_forms.linear_shap import conditional_linear_shap, linear_shap
from parnassus.shapley.closed_forms.tree_leaves import Leaves, additive_output, extract_leaves
from parnassus.shapley.closed_forms.tree_shap import path_dependent_tree_shap, tree_shap
from parnassus.shapley.estimators.coalition_sampling import (
    exhaustive_sample,
    sample_coalition_sets,
    sample_coalitions,
)
from parnassus.shapley.estimators.estimate import Estimator, ShapleyEstimate
from parnassus.shapley.estimators.kernel_shap import (
    kernel_shap,
    kernel_shap_weights,
    limiting_inverse,
    weighted_regression,
)
from parnassus.shapley.estimators.permutation_sampling import balanced_permutation_sampling, permutation_sampling
from parnassus.shapley.estimators.regression_adjustment import regression_adjustment
from parnassus.shapley.estimators.stopping import estimate_to_tolerance
from parnassus.shapley.estimators.stratified_sampling import stratified_sampling
from parnassus.shapley.games.bankruptcy import (
    contested_garment,
    optimistic_bankruptcy_game,
    pessimistic_bankruptcy_game,
    run_to_the_bank,
    talmud_rule,
)
from parnassus.shapley.games.cooperative_games import (
    all_coalitions,
    characteristic_function,
    game_from_worths,
    game_table,
    harsanyi_dividends,
    unanimity_game,
)
from parnassus.shapley.games.shapley_values import (
    banzhaf_values,
    interaction_indices,
    marginal_contributions,
    permutation_table,
    shapley_values,
)
from parnassus.shapley.gradients.deep_lift import deep_lift
from parnassus.shapley.gradients.expected_gradients import expected_gradients
from parnassus.shapley.gradients.integrated_gradients import gradient_times_input, integrated_gradients

__all__ = [
    "Attribution",
    "BackgroundAverage",
    "ConditionalGaussianValue",
    "Estimator",
    "InterventionalValue",
    "Leaves",
    "LinearFirstLayer",
    "MaskedText",
    "ModelError",
    "ShapleyEstimate",
    "ValueFunction",
    "additive_output",
    "all_coalitions",
    "as_model",
    "average_repeats",
    "balanced_permutation_sampling",
    "banzhaf_values",
    "characteristic_function",
    "conditional_linear_shap",
    "contested_garment",
    "deep_lift",
    "deletion_curve",
    "estimate_to_tolerance",
    "exhaustive_sample",
    "expand_group_values",
    "expected_gradients",
    "explain",
    "explain_exactly",
    "explain_to_tolerance",
    "explain_with_estimator",
    "explain_with_estimator_to_tolerance",
    "extract_leaves",
    "flat_image_model",
    "game_from_worths",
    "game_table",
    "gaussian_blur",
    "gradient_times_input",
    "harsanyi_dividends",
    "integrated_gradients",
    "interaction_indices",
    "interventional_value_function",
    "kernel_shap",
    "kernel_shap_weights",
    "limit_batch_size",
    "limiting_inverse",
    "linear_shap",
    "marginal_contributions",
    "masked_ids",
    "masked_images",
    "masked_words",
    "mean_imputation",
    "optimistic_bankruptcy_game",
    "path_dependent_tree_shap",
    "permutation_sampling",
    "permutation_table",
    "pessimistic_bankruptcy_game",
    "pixel_groups",
    "regression_adjustment",
    "run_to_the_bank",
    "sample_coalition_sets",
    "sample_coalitions",
    "shapley_values",
    "stratified_sampling",
    "superpixels",
    "talmud_rule",
    "tiles",
    "tree_shap",
    "unanimity_game",
    "weighted_regression",
]
