"""Shapley values: what each player of a game, and each feature of a prediction, is worth."""

from parnassus.shapley.attribution import Attribution, explain, explain_exactly
from parnassus.shapley.coalitions import drawn_coalitions, every_coalition, shapley_kernel
from parnassus.shapley.division import (
    cautious_game,
    contested_garment,
    hopeful_game,
    run_to_the_bank,
    talmud_rule,
)
from parnassus.shapley.game import dividends, game, game_of, members, unanimity
from parnassus.shapley.kernel_shap import kernel_shap, limiting_inverse, regressed
from parnassus.shapley.masking import ConditionalGaussian, Interventional, ValueFunction, mean_imputed
from parnassus.shapley.model import ModelError, as_model
from parnassus.shapley.values import (
    banzhaf_values,
    by_all_orders,
    by_sampled_orders,
    interactions,
    marginals,
    shapley_values,
)

__all__ = [
    "Attribution",
    "ConditionalGaussian",
    "Interventional",
    "ModelError",
    "ValueFunction",
    "as_model",
    "banzhaf_values",
    "by_all_orders",
    "by_sampled_orders",
    "cautious_game",
    "contested_garment",
    "dividends",
    "drawn_coalitions",
    "every_coalition",
    "explain",
    "explain_exactly",
    "game",
    "game_of",
    "hopeful_game",
    "interactions",
    "kernel_shap",
    "limiting_inverse",
    "marginals",
    "mean_imputed",
    "members",
    "regressed",
    "run_to_the_bank",
    "shapley_kernel",
    "shapley_values",
    "talmud_rule",
    "unanimity",
]
