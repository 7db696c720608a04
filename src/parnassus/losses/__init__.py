"""Loss functions, the likelihoods behind them, risk estimates and norms."""

from parnassus.losses.binary import binary_cross_entropy, binary_cross_entropy_gradient
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
from parnassus.losses.likelihood import bernoulli_nll, laplace_nll, laplace_scale_mle, normal_nll, normal_std_mle
from parnassus.losses.logits import check_logits
from parnassus.losses.norms import Norm, NormViolation, find_norm_violation, l1_norm, l2_norm, p_norm
from parnassus.losses.regression import (
    absolute_error,
    half_mean_squared_error,
    half_squared_error,
    huber_loss,
    mean_power_error,
    mean_squared_error,
    squared_error,
)
from parnassus.losses.risk import RiskEstimate, empirical_risk, expected_risk, held_out_risk, zero_one_loss

__all__ = [
    "Norm",
    "NormViolation",
    "RiskEstimate",
    "absolute_error",
    "accuracy",
    "accuracy_per_class",
    "bernoulli_nll",
    "binary_cross_entropy",
    "binary_cross_entropy_gradient",
    "check_logits",
    "cross_entropy",
    "empirical_risk",
    "expected_risk",
    "find_norm_violation",
    "half_mean_squared_error",
    "half_squared_error",
    "held_out_risk",
    "huber_loss",
    "l1_norm",
    "l2_norm",
    "laplace_nll",
    "laplace_scale_mle",
    "log_softmax",
    "mean_power_error",
    "mean_squared_error",
    "normal_nll",
    "normal_std_mle",
    "one_hot",
    "p_norm",
    "soft_cross_entropy",
    "softmax",
    "softmax_jacobian",
    "squared_error",
    "zero_one_loss",
]
