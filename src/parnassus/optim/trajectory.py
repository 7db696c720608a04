"""The way of any optimiser down a function, as a path to look at."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import grad
from torch.optim import Optimizer

from parnassus.optim.gradient_descent import Loss

Factory: TypeAlias = Callable[[Iterable[nn.Parameter]], Optimizer]
"""What makes an optimiser of parameters: `partial(Adam, lr=0.1)`."""


def trajectory(
    loss: Loss, start: Float[Tensor, "*shape"], optimizer: Factory, *, steps: int
) -> Float[Tensor, "path *shape"]:
    """θ⁽⁰⁾, …, θ⁽ˢᵗᵉᵖˢ⁾ of the optimiser, the start included."""
    slope = grad(loss)
    theta = nn.Parameter(start.clone())
    walker = optimizer([theta])
    path = [start]
    for _ in range(steps):
        theta.grad = slope(theta.detach())
        walker.step()
        path.append(theta.detach().clone())
    return torch.stack(path)


def race(
    losses: Loss, start: Float[Tensor, " dim"], optimizers: Sequence[Factory], *, steps: int
) -> Float[Tensor, "racer path dim"]:
    """The paths of several optimisers from one start, side by side: one backward pass a step serves them all.

    `losses` gives a value for each row of (racer, dim), so that no racer feels another.
    """
    if not optimizers:
        raise ValueError("a race needs at least one optimiser; got none")
    racers = [nn.Parameter(start.clone()) for _ in optimizers]
    walkers = [optimizer([theta]) for optimizer, theta in zip(optimizers, racers, strict=True)]
    slopes = grad(lambda places: losses(places).sum())
    path = [start.repeat(len(racers), 1)]
    for _ in range(steps):
        for theta, own, walker in zip(racers, slopes(path[-1]).unbind(), walkers, strict=True):
            theta.grad = own
            walker.step()
        path.append(torch.stack([theta.detach() for theta in racers]))
    return torch.stack(path, 1)
