"""A trained body under a new head: frozen, or tuned with it (book sec. 10.1.2)."""

from typing import TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

Module = TypeVar("Module", bound=nn.Module)


def freeze(module: Module) -> Module:
    """The module with all its parameters taken out of training; gradients still pass through it."""
    return _trainable(module, trained=False)


def thaw(module: Module) -> Module:
    """The module with all its parameters in training again."""
    return _trainable(module, trained=True)


class Tuned(nn.Module):
    """head(body(x)): features that were learned elsewhere, and a map from them to the new classes (book sec. 10.1.2).

    `freeze(body)` trains the head alone; `thaw` its last layers, or all of it, and they are fine-tuned with the head.
    """

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.head(self.body(x))
        return logits

    def loss(self, x: Float[Tensor, "batch *event"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y)


def _trainable(module: Module, *, trained: bool) -> Module:
    for parameter in module.parameters():
        parameter.requires_grad_(trained)
    return module
