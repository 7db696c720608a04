"""Gradient descent, how its batches are dealt, and how its rate is chosen."""

from parnassus.optim.adagrad import AdaGrad, FullAdaGrad
from parnassus.optim.adagrad_regret import AdaGradRun, lipschitz_trace_bound, smooth_regret_bound, squared_norm
from parnassus.optim.adam import Adam, AdamW
from parnassus.optim.averaging import averaged_descent, biased_coin, coin_slope
from parnassus.optim.bounds import (
    accelerated_bound,
    accelerated_worst,
    averaged_bound,
    averaging_rate,
    convex_bound,
    convex_worst,
    excess_from_slope,
    first_order_decrease,
    flattest_slope_bound,
    least_decrease,
    strongly_convex_bound,
    strongly_convex_worst,
)
from parnassus.optim.clipping import clip_gradients, clipped, global_norm
from parnassus.optim.convex_sets import Segment, below_set, find_escape, intersection, union
from parnassus.optim.convexity import (
    LowerNearby,
    chord_gap,
    find_low_chord,
    least_curvature,
    linearisation_error,
    lower_nearby,
    on_line,
)
from parnassus.optim.early_stopping import EarlyStopping
from parnassus.optim.flows import bowl_solution, gradient_flow, nesterov_flow
from parnassus.optim.folds import CrossValidation, cross_validate, k_folds
from parnassus.optim.gradient_descent import (
    gradient_descent,
    gradient_step,
    per_sample_gradients,
    steepest_descent,
    stochastic_gradient_descent,
)
from parnassus.optim.groupwise import GroupwiseOptimizer
from parnassus.optim.landscapes import flat_floor, plateau, sampled_wave, upturned_bell, wave
from parnassus.optim.minibatches import in_order, partition_once, reshuffle, with_replacement
from parnassus.optim.momentum import Momentum, averaged_momentum, factor_per_step, heavy_ball, largest_stable_rate
from parnassus.optim.nesterov import Accelerated, Nesterov, NesterovMomentum, nesterov_descent
from parnassus.optim.newton import newton_descent, preconditioned_step
from parnassus.optim.problems import (
    Problem,
    egg_box,
    ellipse,
    largest_coordinate,
    log_cosh,
    quadratic,
    quartic,
    ridge_logistic,
    slowest,
    smooth_problems,
)
from parnassus.optim.rate_finder import RateCurve, find_rate
from parnassus.optim.rmsprop import RMSProp
from parnassus.optim.schedules import one_cycle_momentum, one_cycle_rate, step_decay
from parnassus.optim.sgd import SGD
from parnassus.optim.surfaces import Surface, argmin, beale, himmelblau, rosenbrock, saddle, valley
from parnassus.optim.trajectory import race, trajectory
from parnassus.optim.validation import Search, hold_out, validation_search
from parnassus.optim.weight_decay import (
    ParameterGroup,
    decay_groups,
    decay_weights,
    decayed_step,
    l2_gradient,
    l2_penalty,
    penalised_minimiser,
    shrinkage,
)

__all__ = [
    "SGD",
    "Accelerated",
    "AdaGrad",
    "AdaGradRun",
    "Adam",
    "AdamW",
    "CrossValidation",
    "EarlyStopping",
    "FullAdaGrad",
    "GroupwiseOptimizer",
    "LowerNearby",
    "Momentum",
    "Nesterov",
    "NesterovMomentum",
    "ParameterGroup",
    "Problem",
    "RMSProp",
    "RateCurve",
    "Search",
    "Segment",
    "Surface",
    "accelerated_bound",
    "accelerated_worst",
    "argmin",
    "averaged_bound",
    "averaged_descent",
    "averaged_momentum",
    "averaging_rate",
    "beale",
    "below_set",
    "biased_coin",
    "bowl_solution",
    "chord_gap",
    "clip_gradients",
    "clipped",
    "coin_slope",
    "convex_bound",
    "convex_worst",
    "cross_validate",
    "decay_groups",
    "decay_weights",
    "decayed_step",
    "egg_box",
    "ellipse",
    "excess_from_slope",
    "factor_per_step",
    "find_escape",
    "find_low_chord",
    "find_rate",
    "first_order_decrease",
    "flat_floor",
    "flattest_slope_bound",
    "global_norm",
    "gradient_descent",
    "gradient_flow",
    "gradient_step",
    "heavy_ball",
    "himmelblau",
    "hold_out",
    "in_order",
    "intersection",
    "k_folds",
    "l2_gradient",
    "l2_penalty",
    "largest_coordinate",
    "largest_stable_rate",
    "least_curvature",
    "least_decrease",
    "linearisation_error",
    "lipschitz_trace_bound",
    "log_cosh",
    "lower_nearby",
    "nesterov_descent",
    "nesterov_flow",
    "newton_descent",
    "on_line",
    "one_cycle_momentum",
    "one_cycle_rate",
    "partition_once",
    "penalised_minimiser",
    "per_sample_gradients",
    "plateau",
    "preconditioned_step",
    "quadratic",
    "quartic",
    "race",
    "reshuffle",
    "ridge_logistic",
    "rosenbrock",
    "saddle",
    "sampled_wave",
    "shrinkage",
    "slowest",
    "smooth_problems",
    "smooth_regret_bound",
    "squared_norm",
    "steepest_descent",
    "step_decay",
    "stochastic_gradient_descent",
    "strongly_convex_bound",
    "strongly_convex_worst",
    "trajectory",
    "union",
    "upturned_bell",
    "validation_search",
    "valley",
    "wave",
    "with_replacement",
]
