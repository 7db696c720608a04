"""Any optimiser as a path."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.optim import SGD, Adam, Momentum, gradient_descent, race, rosenbrock, trajectory
from parnassus.optim.trajectory import Factory


def loss(theta: Tensor) -> Tensor:
    return theta.cosh().sum()


def test_it_is_the_plain_loop_for_sgd_of_either_make() -> None:
    start = torch.tensor([[1.0, -2.0], [0.5, 0.0]], dtype=torch.float64)
    expected = gradient_descent(loss, start, rate=0.2, steps=7)
    for kind in (SGD, torch.optim.SGD):
        torch.testing.assert_close(trajectory(loss, start, partial(kind, lr=0.2), steps=7), expected)


def test_the_start_is_included_and_not_changed() -> None:
    start = torch.ones(2)
    path = trajectory(loss, start, partial(SGD, lr=0.1), steps=3)
    assert path.shape == (4, 2)
    assert torch.equal(path[0], torch.ones(2))
    assert torch.equal(start, torch.ones(2))
    assert not path.requires_grad


def test_in_a_race_everybody_walks_as_if_alone() -> None:
    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    racers: list[Factory] = [partial(SGD, lr=1e-3), partial(Momentum, lr=1e-3), partial(Adam, lr=0.1)]
    paths = race(rosenbrock(), start, racers, steps=25)
    assert paths.shape == (3, 26, 2)
    for path, racer in zip(paths, racers, strict=True):
        torch.testing.assert_close(path, trajectory(rosenbrock(), start, racer, steps=25), atol=1e-12, rtol=1e-12)


def test_a_race_of_nobody_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="a race needs at least one optimiser; got none"):
        race(rosenbrock(), torch.zeros(2), [], steps=1)
