"""The LSTM against a loop over LSTMCell; dependence on earlier pixels only."""

import pytest
import torch

from parnassus.flows import PixelLSTM, pixel_rnn


def test_matches_lstm_cell_in_raster_order() -> None:
    torch.manual_seed(0)
    network = PixelLSTM(levels=3, hidden_size=8).double()
    grey = torch.randn(2, 1, 2, 3, dtype=torch.float64)
    cell = torch.nn.LSTMCell(6, 8).double()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in network.lstm.state_dict().items()})
    h = c = torch.zeros(2, 8, dtype=torch.float64)
    pixels = grey.flatten(1)
    for position in range(6):
        row, column = divmod(position, 3)
        features = torch.zeros(2, 6, dtype=torch.float64)
        if position >= 1:
            features[:, 0], features[:, 1] = pixels[:, position - 1], 1
        if position >= 3:
            features[:, 2], features[:, 3] = pixels[:, position - 3], 1
        features[:, 4], features[:, 5] = row / 2, column / 3
        h, c = cell(features, (h, c))
        torch.testing.assert_close(network(grey)[:, :, row, column], network.output(h))


@pytest.mark.parametrize("pixel", range(6))
def test_pixel_affects_exactly_the_later_conditionals(pixel: int) -> None:
    torch.manual_seed(0)
    model = pixel_rnn((2, 3), levels=4, hidden_size=8, num_layers=2).double()
    x = torch.randint(4, (1, 2, 3))
    other = x.clone()
    other.view(-1)[pixel] = (other.view(-1)[pixel] + 1) % 4
    with torch.no_grad():
        changed = (model(x) != model(other)).any(1).flatten().nonzero()[:, 0].tolist()
    assert changed == list(range(pixel + 1, 6))
