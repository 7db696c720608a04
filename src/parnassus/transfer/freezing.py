"""Freezing and fine-tuning a trained body under a new head (book sec. 10.1.2)."""

from functools import partial
from typing import TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.layers import check_logit_network
from parnassus.losses import cross_entropy

Module = TypeVar("Module", bound=nn.Module)


def freeze(module: Module) -> Module:
    """Exclude the module from training; gradients still pass through it.

    No parameter is trained. The module and its layers remain in evaluation mode, also when `train()` is called on a
    model that contains them: moving averages of batch normalisation stay fixed and dropout is inactive.
    """
    module.requires_grad_(requires_grad=False)
    for layer in module.modules():
        layer.training = False
        vars(layer)["train"] = partial(_set_mode_of_children, layer)  # hides the method of the class
    return module


def unfreeze(module: Module) -> Module:
    """Include all parameters of the module in training again, and set its layers to training mode."""
    module.requires_grad_(requires_grad=True)
    for layer in module.modules():
        vars(layer).pop("train", None)
    module.train()
    return module


class TransferClassifier(nn.Module):
    """head(body(x)): pretrained features and a new classification head (book sec. 10.1.2).

    After `freeze(body)` only the head is trained; layers that are unfrozen are fine-tuned with it.

    >>> model = TransferClassifier(freeze(nn.Linear(4, 8)), nn.Linear(8, 3))
    >>> model(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        check_logit_network(head)
        self.body, self.head = body, head

    def forward(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.head(self.body(x))
        return logits

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y).mean()


def _set_mode_of_children(layer: nn.Module, mode: bool = True) -> nn.Module:  # noqa: FBT001, FBT002 - as nn.Module.train
    """`train` of a frozen layer: it stays in evaluation mode; layers in it that were unfrozen change theirs."""
    for child in layer.children():
        child.train(mode)
    return layer
