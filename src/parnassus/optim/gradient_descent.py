"""Gradient descent, and its stochastic form over mini-batches (book sec. 1.3)."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import grad, vmap

Loss = Callable[[Tensor], Tensor]
"""ℓ(θ), a scalar."""

Schedule = Callable[[int], float]
"""The learning rate η⁽ᵗ⁾ of step t = 0, 1, …: any function of `parnassus.optim.schedules` with its other arguments."""

Error = Callable[[Tensor, Tensor, Tensor], Tensor]
"""ℰ(θ, x, y) of one example, a scalar."""


def gradient_step(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], rate: float
) -> Float[Tensor, "*shape"]:
    """θ − η g: one step against the gradient (book eq. 1.13)."""
    return theta - rate * gradient


def steepest_descent(gradient: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """−g/‖g‖: no other unit vector y has so small a slope ⟨y, g⟩, which is −‖g‖ (Diehl sec. 1.5)."""
    norm: Tensor = torch.linalg.vector_norm(gradient)
    if norm == 0:
        raise ValueError("where the gradient is zero no direction is the steepest")
    return -gradient / norm


def gradient_descent(
    loss: Loss, start: Float[Tensor, "*shape"], *, rate: float | Schedule, steps: int
) -> Float[Tensor, "path *shape"]:
    """θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ with θ⁽ᵗ⁺¹⁾ = θ⁽ᵗ⁾ − η⁽ᵗ⁾ ∇ℓ(θ⁽ᵗ⁾), the start included (book eqs. 1.13, 3.2, Diehl sec. 1.5).

    The rate is a number or a function of the step.
    """
    slope = grad(loss)
    path = [start]
    for step in range(steps):
        eta = rate(step) if callable(rate) else rate
        _require_positive(eta)
        path.append(gradient_step(path[-1], slope(path[-1]), eta))
    return torch.stack(path)


def per_sample_gradients(
    error: Error,
    theta: Float[Tensor, "*shape"],
    x: Float[Tensor, "batch *example"],
    y: Float[Tensor, "batch *target"],
) -> Float[Tensor, "batch *shape"]:
    """∇_θ ℰ(x_i; θ) of every example at once; their mean estimates the gradient of the risk (book eqs. 1.16-1.18).

    All rows give the full-batch estimate, one row the online one, a few the mini-batch one.
    """
    gradients: Tensor = vmap(grad(error), in_dims=(None, 0, 0))(theta, x, y)
    return gradients


def stochastic_gradient_descent(
    error: Error,
    start: Float[Tensor, "*shape"],
    data: tuple[Float[Tensor, "count *example"], Float[Tensor, "count *target"]],
    *,
    batches: Iterable[Int[Tensor, " _batch"]],
    rate: float,
) -> Float[Tensor, "path *shape"]:
    """Gradient descent whose gradient is the mean over one mini-batch of indices a step (book eq. 1.18).

    Any policy of `parnassus.optim.minibatches` gives the batches; batches of one index make the online method.
    """
    _require_positive(rate)
    x, y = data
    path = [start]
    for rows in batches:
        gradient = per_sample_gradients(error, path[-1], x[rows], y[rows]).mean(0)
        path.append(gradient_step(path[-1], gradient, rate))
    return torch.stack(path)


def _require_positive(rate: float) -> None:
    if not rate > 0:
        raise ValueError(f"the learning rate must be positive; got rate={rate}")
