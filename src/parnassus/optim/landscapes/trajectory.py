"""Trajectories of torch optimisers on a function."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import grad
from torch.optim import Optimizer

from parnassus.optim.optimisers.gradient_descent import Loss

OptimizerFactory: TypeAlias = Callable[[Iterable[nn.Parameter]], Optimizer]
"""A constructor of an optimiser from its parameters, e.g. `partial(Adam, lr=0.1)`."""


def optimizer_trajectory(
    loss: Loss, start: Float[Tensor, "*shape"], optimizer: OptimizerFactory, *, steps: int
) -> Float[Tensor, "path *shape"]:
    """Iterates θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ of the optimiser, the start included."""
    gradient = grad(loss)
    theta = nn.Parameter(start.clone())
    instance = optimizer([theta])
    path = [start]
    for _ in range(steps):
        theta.grad = gradient(theta.detach())
        instance.step()
        path.append(theta.detach().clone())
    return torch.stack(path)


def optimizer_trajectories(
    losses: Loss, start: Float[Tensor, " dim"], optimizers: Sequence[OptimizerFactory], *, steps: int
) -> Float[Tensor, "optimizer path dim"]:
    """Iterates of several optimisers from one start, with one backward pass per step for all of them.

    `losses` returns one value for each row of (optimizer, dim), so that the optimisers are independent.
    """
    if not optimizers:
        raise ValueError("need at least one optimiser; got none")
    parameters = [nn.Parameter(start.clone()) for _ in optimizers]
    instances = [optimizer([theta]) for optimizer, theta in zip(optimizers, parameters, strict=True)]
    gradients = grad(lambda points: losses(points).sum())
    path = [start.repeat(len(parameters), 1)]
    for _ in range(steps):
        for theta, gradient, instance in zip(parameters, gradients(path[-1]).unbind(), instances, strict=True):
            theta.grad = gradient
            instance.step()
        path.append(torch.stack([theta.detach() for theta in parameters]))
    return torch.stack(path, 1)
