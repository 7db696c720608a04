"""Losses: what training makes small."""

from parnassus.losses.classification import (
    accuracy,
    accuracy_per_class,
    cross_entropy,
    log_softmax,
    one_hot,
    soft_cross_entropy,
    softmax,
    softmax_jacobian,
)
from parnassus.losses.squared import mean_squared_error, squared_error

__all__ = [
    "accuracy",
    "accuracy_per_class",
    "cross_entropy",
    "log_softmax",
    "mean_squared_error",
    "one_hot",
    "soft_cross_entropy",
    "softmax",
    "softmax_jacobian",
    "squared_error",
]
