import pytest
import torch

from parnassus.metrics.precision_recall import precision_recall


def test_narrow_samples_have_low_recall_and_wide_samples_low_precision() -> None:
    torch.manual_seed(0)
    real = torch.cat([torch.randn(500, 2), torch.randn(500, 2) + 20])
    narrow = precision_recall(real, torch.randn(1_000, 2))  # one of the two modes
    assert narrow.precision > 0.9
    assert 0.4 < narrow.recall < 0.55
    wide = precision_recall(real, torch.cat([torch.randn(500, 2), torch.randn(500, 2) + 20, 60 * torch.rand(1_000, 2)]))
    assert wide.precision < 0.7
    assert wide.recall > 0.9


def test_too_many_neighbours_raise_value_error() -> None:
    with pytest.raises(ValueError, match="neighbours=5, 5 real and 9 samples"):
        precision_recall(torch.zeros(5, 2), torch.zeros(9, 2), neighbours=5)
