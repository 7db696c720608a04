"""Windows of token sequences."""

import pytest
import torch

from parnassus.data import DataError
from parnassus.data.preparation.token_windows import split_windows, window_batches


def test_every_start_position_occurs_once_per_epoch() -> None:
    batches = window_batches(torch.arange(9), 3, size=2, steps=3)
    windows = torch.cat([batches.at(step) for step in range(3)])
    assert torch.equal(windows, windows[:, :1] + torch.arange(4))
    assert sorted(windows[:, 0].tolist()) == [0, 1, 2, 3, 4, 5]


def test_empty_windows_and_short_texts_raise_errors() -> None:
    with pytest.raises(ValueError, match="window must be at least 1; got window=0"):
        window_batches(torch.arange(9), 0, size=1, steps=1)
    with pytest.raises(DataError, match="training with a window of 9 needs 10 tokens; got 9"):
        window_batches(torch.arange(9), 9, size=1, steps=1)


def test_consecutive_windows_share_one_token() -> None:
    assert split_windows(torch.arange(8), 3).tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]
    assert split_windows(torch.arange(3), 5).tolist() == [[0, 1, 2]]
    with pytest.raises(DataError, match="at least 2 tokens are required for the test; got 1"):
        split_windows(torch.arange(1), 3)
