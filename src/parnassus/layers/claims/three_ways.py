"""Gradients that the notes derive by hand: closed form, autograd and central differences (Zhao sec. 2)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.autodiff.finite_differences import difference_gradient
from parnassus.layers import activations as act
from parnassus.layers.claims.dense import normal
from parnassus.layers.linear_regression import linear_model, linear_sgd_step
from parnassus.layers.normalisation import moments, standardise
from parnassus.layers.softmax_regression import cross_entropy_gradient
from parnassus.losses.classification import soft_cross_entropy, softmax
from parnassus.losses.squared import half_mean_squared_error

PROBE = normal(6, 4, seed=9)
"""Weights of a sum over normalised outputs, so that it has a slope: the plain sum of squares is constant."""


def three_ways(function: Callable[[Tensor], Tensor], at: Tensor, closed: Tensor) -> Evidence:
    looked = difference_gradient(lambda point: float(function(torch.from_numpy(point))), at.numpy())
    return all_of(autograd=close(grad(function)(at), closed, atol=1e-12), differences=close(looked, closed, atol=1e-7))


def summed(activation: act.Activation) -> Callable[[Tensor], Tensor]:
    return lambda z: activation(z).sum()


def normalisation_slope(x: Tensor, outer: Tensor, axis: int) -> Tensor:
    """∂/∂x Σ outer ⊙ x̂ = (outer − mean(outer) − x̂ mean(outer ⊙ x̂)) / √(v + ε), means along the axis."""
    hat = standardise(x, (axis,))
    centred = outer - outer.mean(axis, keepdim=True) - hat * (outer * hat).mean(axis, keepdim=True)
    slope: Tensor = centred / (moments(x, (axis,)).variance + 1e-5).sqrt()
    return slope


@claim("Z2.1", "Z3.4", "Z3.5", "Z4.6", "Z5.4", "Z5.5", "Z5.6", "Z8.1", "Z8.3")
def every_gradient_by_hand_is_that_of_autograd_and_of_differences() -> Evidence:
    """Linear step, softmax with cross-entropy, activations, batch and layer norm: three ways agree (Zhao sec. 2)."""
    x, y, theta = normal(8, 3), normal(8, seed=1), normal(4, seed=2)
    labels, points = softmax(normal(4, seed=4)), normal(6, 4, seed=5)

    def squared(parameters: Tensor) -> Tensor:
        return half_mean_squared_error(linear_model(x, parameters[:3], parameters[3]), y)

    w, b = linear_sgd_step(theta[:3], theta[3], x, y, rate=1.0)
    slopes = {
        "relu": (act.relu, act.relu_slope),
        "sigmoid": (act.sigmoid, act.sigmoid_slope),
        "tanh": (act.tanh, act.tanh_slope),
    }
    return all_of(
        linear_step=three_ways(squared, theta, theta - torch.cat([w, b[None]])),
        cross_entropy=three_ways(
            lambda o: soft_cross_entropy(o[None], labels[None])[0],
            theta,
            cross_entropy_gradient(theta[None], labels[None])[0],
        ),
        **{name: three_ways(summed(f), points, slope(points)) for name, (f, slope) in slopes.items()},
        batch_norm=three_ways(
            lambda z: (PROBE * standardise(z, (0,))).sum(), points, normalisation_slope(points, PROBE, 0)
        ),
        layer_norm=three_ways(
            lambda z: (PROBE * standardise(z, (-1,))).sum(), points, normalisation_slope(points, PROBE, -1)
        ),
    )
