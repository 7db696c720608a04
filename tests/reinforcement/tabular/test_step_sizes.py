"""Polynomial and constant step sizes."""

import pytest
import torch

from parnassus.probability import standard_normal
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size


def test_step_size_one_over_n_gives_the_mean() -> None:
    samples, estimate = standard_normal(50), torch.zeros(1)
    estimate = estimate.double()
    for n, x in enumerate(samples, 1):
        estimate = estimate + polynomial_step_size(1.0)(torch.tensor([float(n)]).double()) * (x - estimate)
    torch.testing.assert_close(estimate[0], samples.mean())


def test_step_size_values() -> None:
    count = torch.tensor([1.0, 4.0, 16.0])
    torch.testing.assert_close(polynomial_step_size(0.75)(count), count**-0.75)
    torch.testing.assert_close(constant_step_size(0.2)(count), torch.full((3,), 0.2))


def test_invalid_arguments_raise_value_error() -> None:
    for power in (0.5, 1.1):
        with pytest.raises(ValueError, match=f"½ < p ≤ 1 for convergence; got power={power}"):
            polynomial_step_size(power)
    with pytest.raises(ValueError, match="0 < α ≤ 1; got alpha=0"):
        constant_step_size(0.0)
