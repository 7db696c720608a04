"""Losses: what training makes small."""

from parnassus.losses.binary import binary_cross_entropy, binary_cross_entropy_slope
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
from parnassus.losses.likelihood import coin_nll, laplace_nll, likeliest_scale, likeliest_sigma, normal_nll
from parnassus.losses.norms import Norm, Violation, l1_norm, l2_norm, norm_violation, p_norm
from parnassus.losses.regression import absolute_error, huber, mean_power_error
from parnassus.losses.risk import Estimate, empirical_risk, expected_risk, held_out_risk, zero_one_loss
from parnassus.losses.squared import half_mean_squared_error, half_squared_error, mean_squared_error, squared_error

__all__ = [
    "Estimate",
    "Norm",
    "Violation",
    "absolute_error",
    "accuracy",
    "accuracy_per_class",
    "binary_cross_entropy",
    "binary_cross_entropy_slope",
    "coin_nll",
    "cross_entropy",
    "empirical_risk",
    "expected_risk",
    "half_mean_squared_error",
    "half_squared_error",
    "held_out_risk",
    "huber",
    "l1_norm",
    "l2_norm",
    "laplace_nll",
    "likeliest_scale",
    "likeliest_sigma",
    "log_softmax",
    "mean_power_error",
    "mean_squared_error",
    "norm_violation",
    "normal_nll",
    "one_hot",
    "p_norm",
    "soft_cross_entropy",
    "softmax",
    "softmax_jacobian",
    "squared_error",
    "zero_one_loss",
]
