"""Reprogramming: a frozen model solves a new task through a learned input map (book sec. 10.1.2)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays
from parnassus.transfer.freezing import freeze


class ReprogrammedModel(nn.Module):
    """p(new class j | x) = model(input_map(x)) at old class label_map[j] (Elsayed et al. 2019; book sec. 10.1.2).

    The whole model is frozen. Only `input_map` is trained; it maps inputs of the new task to inputs of the model.
    """

    label_map: Tensor

    def __init__(self, model: nn.Module, input_map: nn.Module, label_map: Int[Tensor, " classes"]) -> None:
        super().__init__()
        if len(label_map.unique()) < len(label_map):
            raise ValueError(f"label_map must contain distinct classes; got {label_map.tolist()}")
        self.model, self.input_map = freeze(model), input_map
        self.register_buffer("label_map", label_map)

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.model(self.input_map(x))
        return logits[:, self.label_map]

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y)


class LearnedFrame(nn.Module):
    """An image inside a learned frame: x where the mask is True, tanh(W) elsewhere (Elsayed et al. 2019)."""

    inside: Tensor

    def __init__(self, shape: tuple[int, int, int], inside: Bool[Tensor, "height width"]) -> None:
        super().__init__()
        self.frame = nn.Parameter(torch.zeros(shape))
        self.register_buffer("inside", inside)

    def forward(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels frame_height frame_width"]:
        rows, columns = self.inside.any(1).nonzero(), self.inside.any(0).nonzero()
        top, left = int(rows[0]), int(columns[0])
        frame_height, frame_width = self.inside.shape
        padding = (left, frame_width - left - x.shape[3], top, frame_height - top - x.shape[2])
        return torch.where(self.inside, nn.functional.pad(x, padding), self.frame.tanh())


def learned_frame(shape: tuple[int, int, int], height: int, width: int) -> LearnedFrame:
    """A frame of `shape` around centred images of this height and width."""
    _, frame_height, frame_width = shape
    if not (0 < height < frame_height and 0 < width < frame_width):
        raise ValueError(
            f"the image must be smaller than its frame of {frame_height} × {frame_width}; got {height} × {width}"
        )
    top, left = (frame_height - height) // 2, (frame_width - width) // 2
    inside = torch.zeros(frame_height, frame_width, dtype=torch.bool)
    inside[top : top + height, left : left + width] = True
    return LearnedFrame(shape, inside)
