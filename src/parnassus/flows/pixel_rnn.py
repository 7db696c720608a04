"""PixelRNN: a picture as a sequence of pixels, read and continued by an LSTM (book sec. 13.1)."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.flows.pixel_model import PixelModel


class PixelLSTM(nn.Module):
    """Layers of LSTM over the pixels in reading order, with logits for the next one at each step (book sec. 13.1).

        h_i, c_i = LSTM(e_i, h_{i−1}, c_{i−1}),   logits of x_i = W h_i + b

    e_i has the pixel before the one to come and the pixel above it, each with whether it exists, and the row and the
    column. All else is known through the state alone, which drawing carries on: a pixel costs one step, wherever it
    lies. The row and diagonal LSTMs of van den Oord et al. (2016) are left out.
    """

    def __init__(self, *, levels: int = 2, width: int = 64, layers: int = 1) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, width, num_layers=layers, batch_first=True)
        self.leave = nn.Linear(width, levels)

    def read(self, grey: Float[Tensor, "batch 1 height width"], start: int, stop: int) -> Float[Tensor, "batch time 6"]:
        """What is told to the LSTM before the pixels number `start` … `stop` − 1."""
        height, width = grey.shape[2:]
        place = torch.arange(start, stop, device=grey.device)
        row, column = place // width, place % width
        pixels = grey.flatten(1)
        before, above = (pixels[:, (place - back).clamp(min=0)] for back in (1, width))
        known = [place >= back for back in (1, width)]
        told = [before * known[0], known[0], above * known[1], known[1], row / height, column / width]
        return torch.stack([each.to(grey.dtype).expand(len(grey), -1) for each in told], 2)

    def forward(self, grey: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch levels height width"]:
        """All laws in one call: the inputs are known, only the state goes step by step."""
        height, width = grey.shape[2:]
        states, _ = self.lstm(self.read(grey, 0, height * width))
        logits: Tensor = self.leave(states).mT.unflatten(2, (height, width))
        return logits

    def laws(self, grey: Float[Tensor, "batch 1 height width"], rows: int) -> Iterator[Float[Tensor, "batch levels"]]:
        """The laws one by one: what is given is read at once, then a step for every pixel."""
        first, last = rows * grey.shape[3], grey[0].numel()
        state = self.lstm(self.read(grey, 0, first))[1] if first else None
        for pixel in range(first, last):
            output, state = self.lstm(self.read(grey, pixel, pixel + 1), state)
            yield self.leave(output[:, 0])


def pixel_rnn(shape: tuple[int, int], *, levels: int = 2, width: int = 64, layers: int = 1) -> PixelModel:
    """A law over pictures by an LSTM over their pixels (book sec. 13.1)."""
    return PixelModel(PixelLSTM(levels=levels, width=width, layers=layers), shape, levels=levels)
