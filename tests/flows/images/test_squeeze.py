"""Squeezing of 2 × 2 pixels into channels, and checkerboard masks."""

import pytest
import torch

from parnassus.flows import Squeeze, checkerboard_channels


def test_each_channel_is_one_pixel_of_every_block() -> None:
    x = torch.arange(2 * 2 * 4 * 6.0).reshape(2, 2, 4, 6)
    z, log_det = Squeeze().inverse(x)
    assert z.shape == (2, 8, 2, 3)
    for channel in range(2):
        for row in range(2):
            for column in range(2):
                torch.testing.assert_close(z[:, 4 * channel + 2 * row + column], x[:, channel, row::2, column::2])
    x_back, log_det_back = Squeeze()(z)
    assert torch.equal(x_back, x)
    assert log_det.tolist() == log_det_back.tolist() == [0, 0]


def test_checkerboard_channels_match_the_black_squares() -> None:
    mask = torch.zeros(1, 8, 2, 3)
    mask[:, list(checkerboard_channels(8))] = 1
    board = Squeeze()(mask)[0][0]
    rows, columns = torch.arange(4)[:, None], torch.arange(6)
    assert torch.equal(board, ((rows + columns) % 2 == 0).float().expand(2, 4, 6))


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be even; got height=3, width=4"):
        Squeeze().inverse(torch.zeros(1, 1, 3, 4))
    with pytest.raises(ValueError, match="a multiple of 4; got channels=6"):
        Squeeze()(torch.zeros(1, 6, 2, 2))
    with pytest.raises(ValueError, match="a positive multiple of 4; got channels=6"):
        checkerboard_channels(6)
