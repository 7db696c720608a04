"""Gradient descent, and its stochastic form over mini-batches (book sec. 1.3)."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import grad, vmap

Loss = Callable[[Tensor], Tensor]
"""ℓ(θ), a scalar."""

Error = Callable[[Tensor, Tensor, Tensor], Tensor]
"""ℰ(θ, x, y) of one example, a scalar."""


def gradient_step(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], rate: float
) -> Float[Tensor, "*shape"]:
    """θ − η g: one step against the gradient (book eq. 1.13)."""
    return theta - rate * gradient


def gradient_descent(
    loss: Loss, start: Float[Tensor, "*shape"], *, rate: float, steps: int
) -> Float[Tensor, "path *shape"]:
    """θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ with θ⁽ᵗ⁺¹⁾ = θ⁽ᵗ⁾ − η ∇ℓ(θ⁽ᵗ⁾), the start included (book eq. 1.13)."""
    _require_positive(rate)
    slope = grad(loss)
    path = [start]
    for _ in range(steps):
        path.append(gradient_step(path[-1], slope(path[-1]), rate))
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
    batches: Iterable[Int[Tensor, " batch"]],
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
