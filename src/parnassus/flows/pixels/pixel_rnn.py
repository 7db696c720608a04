"""PixelRNN: an LSTM over the pixels of an image in raster order (book sec. 13.1)."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.pixels.pixel_model import PixelModel


class PixelLSTM(nn.Module):
    """An LSTM over the pixels in raster order with the logits of the next pixel at each step (book sec. 13.1).

        h_i, c_i = LSTM(e_i, h_{i−1}, c_{i−1}),   logits of x_i = W h_i + b

    e_i holds the previous pixel and the pixel above x_i, each with an indicator of whether it exists, and the row and
    column. The state summarises all other pixels, so sampling takes one step per pixel. The row and diagonal LSTMs of
    van den Oord et al. (2016) are not implemented.

    >>> PixelLSTM(hidden_size=8)(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 2, 4, 4])
    """

    def __init__(self, *, levels: int = 2, hidden_size: int = 64, num_layers: int = 1) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, hidden_size, num_layers=num_layers, batch_first=True)
        self.output = nn.Linear(hidden_size, levels)

    def input_features(
        self, grey: Float[Tensor, "batch 1 height width"], start: int, stop: int
    ) -> Float[Tensor, "batch time 6"]:
        """The inputs of the LSTM for pixels `start` … `stop` − 1."""
        height, width = grey.shape[2:]
        position = torch.arange(start, stop, device=grey.device)
        row, column = position // width, position % width
        pixels = grey.flatten(1)
        previous, above = (pixels[:, (position - offset).clamp(min=0)] for offset in (1, width))
        exists = [position >= offset for offset in (1, width)]
        features = [previous * exists[0], exists[0], above * exists[1], exists[1], row / height, column / width]
        return torch.stack([each.to(grey.dtype).expand(len(grey), -1) for each in features], 2)

    def forward(self, grey: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch levels height width"]:
        """The logits of all pixels in one call of the LSTM."""
        height, width = grey.shape[2:]
        states, _ = self.lstm(self.input_features(grey, 0, height * width))
        logits: Tensor = self.output(states).mT.unflatten(2, (height, width))
        return logits

    def pixel_logits(
        self, grey: Float[Tensor, "batch 1 height width"], first_row: int
    ) -> Iterator[Float[Tensor, "batch levels"]]:
        """Yield logits pixel by pixel: one call for the given rows, then one step per pixel."""
        first, last = first_row * grey.shape[3], grey[0].numel()
        state = self.lstm(self.input_features(grey, 0, first))[1] if first else None
        for pixel in range(first, last):
            output, state = self.lstm(self.input_features(grey, pixel, pixel + 1), state)
            yield self.output(output[:, 0])


def pixel_rnn(shape: tuple[int, int], *, levels: int = 2, hidden_size: int = 64, num_layers: int = 1) -> PixelModel:
    """PixelRNN: a distribution of images by an LSTM over their pixels (book sec. 13.1)."""
    return PixelModel(PixelLSTM(levels=levels, hidden_size=hidden_size, num_layers=num_layers), shape, levels=levels)
