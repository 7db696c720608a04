"""Shapley values: what each player of a game, and each feature of a prediction, is worth."""

from parnassus.shapley.adjustment import adjusted
from parnassus.shapley.attribution import Attribution, explain, explain_exactly, of_repeats
from parnassus.shapley.coalitions import drawn_coalitions, drawn_sets, every_coalition, shapley_kernel
from parnassus.shapley.convergence import explain_until
from parnassus.shapley.deep_lift import deep_lift
from parnassus.shapley.deletion import deletion_curve
from parnassus.shapley.division import (
    cautious_game,
    contested_garment,
    hopeful_game,
    run_to_the_bank,
    talmud_rule,
)
from parnassus.shapley.first_layer import LinearFirst, interventional
from parnassus.shapley.game import dividends, game, game_of, looked_up, members, unanimity
from parnassus.shapley.gradients import expected_gradients, gradient_times_input, integrated_gradients
from parnassus.shapley.kernel_shap import kernel_shap, limiting_inverse, regressed
from parnassus.shapley.leaves import Leaves, leaves_of, said_by_trees
from parnassus.shapley.linear import explain_linear, explain_linear_given
from parnassus.shapley.masking import (
    ConditionalGaussian,
    Interventional,
    MeanOfGames,
    ValueFunction,
    mean_imputed,
)
from parnassus.shapley.model import ModelError, as_model
from parnassus.shapley.orders import by_balanced_orders, by_orders
from parnassus.shapley.portions import in_parts
from parnassus.shapley.sampling import explain_by, explain_by_until
from parnassus.shapley.stopping import until
from parnassus.shapley.strata import by_sizes
from parnassus.shapley.superpixels import blurred, masked_images, of_images, painted, pixel_groups, superpixels, tiles
from parnassus.shapley.tokens import MaskedText, masked_ids, masked_words
from parnassus.shapley.trees import explain_trees, explain_trees_by_cover
from parnassus.shapley.values import (
    banzhaf_values,
    by_all_orders,
    interactions,
    marginals,
    shapley_values,
)

__all__ = [
    "Attribution",
    "ConditionalGaussian",
    "Interventional",
    "Leaves",
    "LinearFirst",
    "MaskedText",
    "MeanOfGames",
    "ModelError",
    "ValueFunction",
    "adjusted",
    "as_model",
    "banzhaf_values",
    "blurred",
    "by_all_orders",
    "by_balanced_orders",
    "by_orders",
    "by_sizes",
    "cautious_game",
    "contested_garment",
    "deep_lift",
    "deletion_curve",
    "dividends",
    "drawn_coalitions",
    "drawn_sets",
    "every_coalition",
    "expected_gradients",
    "explain",
    "explain_by",
    "explain_by_until",
    "explain_exactly",
    "explain_linear",
    "explain_linear_given",
    "explain_trees",
    "explain_trees_by_cover",
    "explain_until",
    "game",
    "game_of",
    "gradient_times_input",
    "hopeful_game",
    "in_parts",
    "integrated_gradients",
    "interactions",
    "interventional",
    "kernel_shap",
    "leaves_of",
    "limiting_inverse",
    "looked_up",
    "marginals",
    "masked_ids",
    "masked_images",
    "masked_words",
    "mean_imputed",
    "members",
    "of_images",
    "of_repeats",
    "painted",
    "pixel_groups",
    "regressed",
    "run_to_the_bank",
    "said_by_trees",
    "shapley_kernel",
    "shapley_values",
    "superpixels",
    "talmud_rule",
    "tiles",
    "unanimity",
    "until",
]
