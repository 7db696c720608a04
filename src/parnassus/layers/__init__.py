"""Activations, dense layers and the first models built of them."""

from parnassus.layers.activations import (
    Activation,
    gelu,
    identity,
    leaky_relu,
    relu,
    sigmoid,
    sign_pm1,
    step01,
    tanh,
)
from parnassus.layers.classifier import (
    Classifier,
    Evaluation,
    dead_logits,
    dense_classifier,
    evaluate,
    require_labels,
)
from parnassus.layers.dense import (
    Dense,
    Initialiser,
    affine,
    layer_outputs,
    mlp,
    parameter_count,
    uniform_by_fan_in,
)
from parnassus.layers.linear_regression import LinearRegression, least_squares, linear_model, polynomial_features
from parnassus.layers.placement import Placement

__all__ = [
    "Activation",
    "Classifier",
    "Dense",
    "Evaluation",
    "Initialiser",
    "LinearRegression",
    "Placement",
    "affine",
    "dead_logits",
    "dense_classifier",
    "evaluate",
    "gelu",
    "identity",
    "layer_outputs",
    "leaky_relu",
    "least_squares",
    "linear_model",
    "mlp",
    "parameter_count",
    "polynomial_features",
    "relu",
    "require_labels",
    "sigmoid",
    "sign_pm1",
    "step01",
    "tanh",
    "uniform_by_fan_in",
]
