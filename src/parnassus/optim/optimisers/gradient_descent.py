"""Gradient descent and mini-batch stochastic gradient descent as functions (book sec. 1.3)."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import grad, vmap

from parnassus.errors import check_positive

Loss = Callable[[Tensor], Tensor]
"""A scalar loss ℓ(θ)."""

LearningRateSchedule = Callable[[int], float]
"""The learning rate η⁽ᵗ⁾ of step t = 0, 1, …"""

Error = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The scalar loss ℰ(θ, x, y) of one example."""


def gradient_step(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], learning_rate: float
) -> Float[Tensor, "*shape"]:
    """θ − η g: one step against the gradient (book eq. 1.13)."""
    return theta - learning_rate * gradient


def steepest_descent(gradient: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """−g/‖g‖: the unit vector y with the smallest directional derivative ⟨y, g⟩ = −‖g‖ (Diehl sec. 1.5)."""
    norm: Tensor = torch.linalg.vector_norm(gradient)
    if norm == 0:
        raise ValueError("the steepest descent direction needs a nonzero gradient; got zero")
    return -gradient / norm


def gradient_descent(
    loss: Loss, start: Float[Tensor, "*shape"], *, learning_rate: float | LearningRateSchedule, steps: int
) -> Float[Tensor, "path *shape"]:
    """Iterates θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ of θ⁽ᵗ⁺¹⁾ = θ⁽ᵗ⁾ − η⁽ᵗ⁾ ∇ℓ(θ⁽ᵗ⁾) (book eqs. 1.13, 3.2, Diehl sec. 1.5).

    The learning rate is a number or a function of the step.
    """
    gradient = grad(loss)
    path = [start]
    for step in range(steps):
        eta = learning_rate(step) if callable(learning_rate) else learning_rate
        check_positive(learning_rate=eta)
        path.append(gradient_step(path[-1], gradient(path[-1]), eta))
    return torch.stack(path)


def per_sample_gradients(
    error: Error,
    theta: Float[Tensor, "*shape"],
    x: Float[Tensor, "batch *example"],
    y: Float[Tensor, "batch *target"],
) -> Float[Tensor, "batch *shape"]:
    """∇_θ ℰ(x_i; θ) of every example; their mean estimates the gradient of the risk (book eqs. 1.16-1.18).

    All examples give the full-batch gradient, one example the online estimate, several a mini-batch estimate.
    """
    gradients: Tensor = vmap(grad(error), in_dims=(None, 0, 0))(theta, x, y)
    return gradients


def stochastic_gradient_descent(
    error: Error,
    start: Float[Tensor, "*shape"],
    data: tuple[Float[Tensor, "count *example"], Float[Tensor, "count *target"]],
    *,
    batches: Iterable[Int[Tensor, " _batch"]],
    learning_rate: float,
) -> Float[Tensor, "path *shape"]:
    """Iterates of SGD, with the mean gradient over one mini-batch of indices per step (book eq. 1.18).

    Any function of `parnassus.optim.training.minibatches` gives the batches; batches of one index give online SGD.
    """
    check_positive(learning_rate=learning_rate)
    x, y = data
    path = [start]
    for indices in batches:
        gradient = per_sample_gradients(error, path[-1], x[indices], y[indices]).mean(0)
        path.append(gradient_step(path[-1], gradient, learning_rate))
    return torch.stack(path)
