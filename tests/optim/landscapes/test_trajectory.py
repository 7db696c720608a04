"""Trajectories of single and several optimisers."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.optim import (
    SGD,
    Adam,
    Momentum,
    gradient_descent,
    optimizer_trajectories,
    optimizer_trajectory,
    rosenbrock,
)
from parnassus.optim.landscapes.trajectory import OptimizerFactory


def loss(theta: Tensor) -> Tensor:
    return theta.cosh().sum()


def test_sgd_matches_gradient_descent() -> None:
    start = torch.tensor([[1.0, -2.0], [0.5, 0.0]], dtype=torch.float64)
    expected = gradient_descent(loss, start, learning_rate=0.2, steps=7)
    for optimizer in (SGD, torch.optim.SGD):
        torch.testing.assert_close(optimizer_trajectory(loss, start, partial(optimizer, lr=0.2), steps=7), expected)


def test_start_is_included_and_unchanged() -> None:
    start = torch.ones(2)
    path = optimizer_trajectory(loss, start, partial(SGD, lr=0.1), steps=3)
    assert path.shape == (4, 2)
    assert torch.equal(path[0], torch.ones(2))
    assert torch.equal(start, torch.ones(2))
    assert not path.requires_grad


def test_trajectories_are_independent_of_each_other() -> None:
    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    optimizers: list[OptimizerFactory] = [partial(SGD, lr=1e-3), partial(Momentum, lr=1e-3), partial(Adam, lr=0.1)]
    paths = optimizer_trajectories(rosenbrock(), start, optimizers, steps=25)
    assert paths.shape == (3, 26, 2)
    for path, optimizer in zip(paths, optimizers, strict=True):
        torch.testing.assert_close(
            path, optimizer_trajectory(rosenbrock(), start, optimizer, steps=25), atol=1e-12, rtol=1e-12
        )


def test_empty_list_of_optimisers_raises_value_error() -> None:
    with pytest.raises(ValueError, match="need at least one optimiser; got none"):
        optimizer_trajectories(rosenbrock(), torch.zeros(2), [], steps=1)
