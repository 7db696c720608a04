"""An LSTM over pixels against one walked by hand, and what it may and may not hear."""

import pytest
import torch

from parnassus.flows import PixelLSTM, pixel_rnn


def test_it_is_a_walk_of_the_cell_over_the_pixels_in_reading_order() -> None:
    torch.manual_seed(0)
    network = PixelLSTM(levels=3, width=8).double()
    grey = torch.randn(2, 1, 2, 3, dtype=torch.float64)
    cell = torch.nn.LSTMCell(6, 8).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in network.lstm.state_dict().items()})
    h = c = torch.zeros(2, 8, dtype=torch.float64)
    pixels = grey.flatten(1)
    for place in range(6):
        row, column = divmod(place, 3)
        told = torch.zeros(2, 6, dtype=torch.float64)
        if place >= 1:
            told[:, 0], told[:, 1] = pixels[:, place - 1], 1
        if place >= 3:
            told[:, 2], told[:, 3] = pixels[:, place - 3], 1
        told[:, 4], told[:, 5] = row / 2, column / 3
        h, c = cell(told, (h, c))
        torch.testing.assert_close(network(grey)[:, :, row, column], network.leave(h))


@pytest.mark.parametrize("pixel", range(6))
def test_changing_a_pixel_changes_all_later_laws_and_no_other(pixel: int) -> None:
    torch.manual_seed(0)
    model = pixel_rnn((2, 3), levels=4, width=8, layers=2).double()
    x = torch.randint(4, (1, 2, 3))
    other = x.clone()
    other.view(-1)[pixel] = (other.view(-1)[pixel] + 1) % 4
    with torch.no_grad():
        changed = (model(x) != model(other)).any(1).flatten().nonzero()[:, 0].tolist()
    assert changed == list(range(pixel + 1, 6))
