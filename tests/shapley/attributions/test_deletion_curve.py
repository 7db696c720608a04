"""Deletion curves: the output while players are removed one by one."""

import pytest
import torch

from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.interventional import InterventionalValue


def test_largest_scores_are_removed_first() -> None:
    def model(z: torch.Tensor) -> torch.Tensor:
        return torch.stack([z.sum(1), -z.sum(1)], 1)

    value = InterventionalValue(model, torch.zeros(2, 3, dtype=torch.float64))
    x = torch.tensor([[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]], dtype=torch.float64)
    outputs = deletion_curve(value, x, torch.tensor([0, 1]), x)
    assert outputs.tolist() == [[7.0, 3.0, 1.0, 0.0], [-8.0, -3.0, 0.0, 0.0]]


def test_mismatched_scores_raise_value_error() -> None:
    value = InterventionalValue(lambda z: z, torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"3 scores are needed for each of 1 rows; got 1 and \(1, 2\)"):
        deletion_curve(value, torch.ones(1, 3), torch.tensor([0]), torch.ones(1, 2))
