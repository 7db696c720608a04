"""Gradient descent, how its batches are dealt, and how its rate is chosen."""

from parnassus.optim.gradient_descent import (
    gradient_descent,
    gradient_step,
    per_sample_gradients,
    stochastic_gradient_descent,
)
from parnassus.optim.minibatches import in_order, partition_once, reshuffle, with_replacement
from parnassus.optim.momentum import factor_per_step, heavy_ball, largest_stable_rate
from parnassus.optim.rate_finder import RateCurve, find_rate
from parnassus.optim.schedules import one_cycle_momentum, one_cycle_rate
from parnassus.optim.validation import Search, hold_out, validation_search

__all__ = [
    "RateCurve",
    "Search",
    "factor_per_step",
    "find_rate",
    "gradient_descent",
    "gradient_step",
    "heavy_ball",
    "hold_out",
    "in_order",
    "largest_stable_rate",
    "one_cycle_momentum",
    "one_cycle_rate",
    "partition_once",
    "per_sample_gradients",
    "reshuffle",
    "stochastic_gradient_descent",
    "validation_search",
    "with_replacement",
]
