"""Freezing and fine-tuning a trained body under a new head (book sec. 10.1.2)."""

from typing import TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays

Module = TypeVar("Module", bound=nn.Module)


def freeze(module: Module) -> Module:
    """Exclude all parameters of the module from training; gradients still pass through it."""
    return _set_trainable(module, trainable=False)


def unfreeze(module: Module) -> Module:
    """Include all parameters of the module in training again."""
    return _set_trainable(module, trainable=True)


class TransferClassifier(nn.Module):
    """head(body(x)): pretrained features and a new classification head (book sec. 10.1.2).

    After `freeze(body)` only the head is trained; layers that are unfrozen are fine-tuned with it.
    """

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.head(self.body(x))
        return logits

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y)


def _set_trainable(module: Module, *, trainable: bool) -> Module:
    for parameter in module.parameters():
        parameter.requires_grad_(trainable)
    return module
