"""Reprogramming: a frozen model does another task when only what goes into it is learned (book sec. 10.1.2)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.transfer.freezing import freeze


class Reprogrammed(nn.Module):
    """p(new class | x) = model(enter(x)) at the old class that stands for it (Elsayed et al. 2019; book sec. 10.1.2).

    The model is frozen, its last layer too. `enter` alone is learned; it maps the new inputs, which may be of another
    kind, to inputs of the model. `stands_for[j]` is the old class that means the new class j.
    """

    stands_for: Tensor

    def __init__(self, model: nn.Module, enter: nn.Module, stands_for: Int[Tensor, " classes"]) -> None:
        super().__init__()
        if len(stands_for.unique()) < len(stands_for):
            raise ValueError(f"an old class can stand for one new class only; got {stands_for.tolist()}")
        self.model, self.enter = freeze(model), enter
        self.register_buffer("stands_for", stands_for)

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.model(self.enter(x))
        return logits[:, self.stands_for]

    def loss(self, x: Float[Tensor, "batch *event"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y)


class Frame(nn.Module):
    """The new picture amid a learned one: x where the mask is True, W elsewhere (Elsayed et al. 2019)."""

    inside: Tensor

    def __init__(self, shape: tuple[int, int, int], inside: Bool[Tensor, "height across"]) -> None:
        super().__init__()
        self.frame = nn.Parameter(torch.zeros(shape))
        self.register_buffer("inside", inside)

    def forward(self, x: Float[Tensor, "batch channels height across"]) -> Float[Tensor, "batch channels high wide"]:
        rows, columns = self.inside.any(1).nonzero(), self.inside.any(0).nonzero()
        top, left = int(rows[0]), int(columns[0])
        high, wide = self.inside.shape
        around = (left, wide - left - x.shape[3], top, high - top - x.shape[2])
        return torch.where(self.inside, nn.functional.pad(x, around), self.frame.tanh())


def picture_frame(shape: tuple[int, int, int], height: int, across: int) -> Frame:
    """A frame of `shape` around pictures of this height and width, which lie in its middle."""
    _, high, wide = shape
    if not (0 < height < high and 0 < across < wide):
        raise ValueError(f"the picture must be smaller than its frame of {high} × {wide}; got {height} × {across}")
    top, left = (high - height) // 2, (wide - across) // 2
    inside = torch.zeros(high, wide, dtype=torch.bool)
    inside[top : top + height, left : left + across] = True
    return Frame(shape, inside)
