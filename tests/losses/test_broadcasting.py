"""One label for several rows is refused everywhere, instead of being broadcast."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numpy as np
import pytest
import torch

from parnassus import autodiff
from parnassus.diffusion.guidance import class_gradient
from parnassus.kernels.gaussian_processes.calibration import reliability
from parnassus.layers.linear_models.robust_regression import weighted_least_squares
from parnassus.layers.linear_models.softmax_regression import cross_entropy_gradient
from parnassus.layers.linear_models.support_vector_machine import multiclass_hinge
from parnassus.losses import zero_one_loss

SCORES, LABEL = torch.randn(5, 3), torch.tensor([1])
X, Y = torch.randn(5, 2), torch.randn(5)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (multiclass_hinge, (SCORES, LABEL)),
        (zero_one_loss, (SCORES.argmax(1), LABEL)),
        (reliability, (SCORES.softmax(1), LABEL)),
        (cross_entropy_gradient, (SCORES, SCORES[:1].softmax(1))),
        (weighted_least_squares, (X, Y, torch.ones(1))),
        (class_gradient, (lambda x, t: x, SCORES, torch.zeros(5, dtype=torch.int64), LABEL)),
        (autodiff.squared_error, (np.ones((5, 1)), np.ones(5))),
    ],
)
def test_different_lengths_raise_value_error(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"must have the same shape; got \(5,.*\) and \("):
        unwrap(function)(*arguments)  # without the shape checks of the tests
