"""Hand-derived gradients agree with automatic differentiation and central differences (Zhao sec. 2)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.autodiff.finite_differences import numerical_gradient
from parnassus.layers import activations as act
from parnassus.layers.linear_models.linear_regression import linear_model, linear_sgd_step
from parnassus.layers.linear_models.softmax_regression import cross_entropy_gradient
from parnassus.layers.normalisation import moments, standardise
from parnassus.losses.classification import soft_cross_entropy, softmax
from parnassus.losses.regression import half_mean_squared_error
from parnassus.probability import standard_normal

PROBE = standard_normal(6, 4, seed=9)
"""Weights of a sum over normalised outputs; the unweighted sum of squares is constant and has gradient zero."""


def compare_gradients(function: Callable[[Tensor], Tensor], at: Tensor, closed: Tensor) -> Evidence:
    differences = numerical_gradient(lambda point: float(function(torch.from_numpy(point))), at.numpy())
    return all_of(
        autograd=close(grad(function)(at), closed, atol=1e-12), differences=close(differences, closed, atol=1e-7)
    )


def sum_outputs(activation: act.Activation) -> Callable[[Tensor], Tensor]:
    return lambda z: activation(z).sum()


def normalisation_gradient(x: Tensor, outer: Tensor, axis: int) -> Tensor:
    """∂/∂x Σ outer ⊙ x̂ = (outer − mean(outer) − x̂ mean(outer ⊙ x̂)) / √(v + ε), means along the axis."""
    hat = standardise(x, (axis,))
    centred = outer - outer.mean(axis, keepdim=True) - hat * (outer * hat).mean(axis, keepdim=True)
    gradient: Tensor = centred / (moments(x, (axis,)).variance + 1e-5).sqrt()
    return gradient


@claim("Z2.1", "Z3.4", "Z3.5", "Z4.6", "Z5.4", "Z5.5", "Z5.6", "Z8.1", "Z8.3")
def hand_derived_gradients_agree_with_autograd() -> Evidence:
    """Gradients of linear step, cross-entropy, activations and normalisation: three methods agree (Zhao sec. 2)."""
    x, y, theta = standard_normal(8, 3), standard_normal(8, seed=1), standard_normal(4, seed=2)
    labels, points = softmax(standard_normal(4, seed=4)), standard_normal(6, 4, seed=5)

    def squared_loss(parameters: Tensor) -> Tensor:
        return half_mean_squared_error(linear_model(x, parameters[:3], parameters[3]), y)

    w, b = linear_sgd_step(theta[:3], theta[3], x, y, learning_rate=1.0)
    derivatives = {
        "relu": (act.relu, act.relu_derivative),
        "sigmoid": (act.sigmoid, act.sigmoid_derivative),
        "tanh": (act.tanh, act.tanh_derivative),
    }
    return all_of(
        linear_step=compare_gradients(squared_loss, theta, theta - torch.cat([w, b[None]])),
        cross_entropy=compare_gradients(
            lambda o: soft_cross_entropy(o[None], labels[None])[0],
            theta,
            cross_entropy_gradient(theta[None], labels[None])[0],
        ),
        **{
            name: compare_gradients(sum_outputs(f), points, derivative(points))
            for name, (f, derivative) in derivatives.items()
        },
        batch_norm=compare_gradients(
            lambda z: (PROBE * standardise(z, (0,))).sum(), points, normalisation_gradient(points, PROBE, 0)
        ),
        layer_norm=compare_gradients(
            lambda z: (PROBE * standardise(z, (-1,))).sum(), points, normalisation_gradient(points, PROBE, -1)
        ),
    )
