"""A check that logits are not probabilities already, which the losses would normalise a second time."""

import torch
from torch import Tensor
from torch.autograd.graph import Node

PROBABILITY_NODES = {
    "SigmoidBackward": "sigmoid",
    "HardsigmoidBackward": "hardsigmoid",
    "LogSigmoidBackward": "logsigmoid",
    "SoftmaxBackward": "softmax",
}
"""Nodes of autograd's graph whose values are probabilities of logits, or their logarithms."""
SHAPE_NODES = (
    "AliasBackward", "CloneBackward", "ExpandBackward", "PermuteBackward", "ReshapeAliasBackward", "SelectBackward",
    "SliceBackward", "SqueezeBackward", "TBackward", "ToCopyBackward", "TransposeBackward", "UnsafeViewBackward",
    "UnsqueezeBackward", "ViewBackward",
)  # fmt: skip
"""Nodes that change the shape or the type of a tensor, not its values."""


def check_logits(logits: Tensor) -> None:
    """Raise a ValueError if the tensor was computed by a sigmoid or a softmax.

    The loss would apply a sigmoid or a softmax again: it would still decrease, to a wrong model. The check reads the
    graph of autograd, not the values, so that it costs microseconds; without gradients it has no effect.
    """
    if torch.compiler.is_compiling():
        return
    node = logits.grad_fn
    while node is not None and _kind(node) in SHAPE_NODES:
        node = _inputs(node)[0]
    activation = None if node is None else PROBABILITY_NODES.get(_kind(node), "softmax" if _is_quotient(node) else None)
    if activation is not None:
        raise ValueError(
            "logits must not have passed through a sigmoid or a softmax, which the loss applies itself; "
            f"got the output of {activation}: remove it from the end of the network"
        )


def _kind(node: Node) -> str:
    return node.name().rstrip("0123456789")


def _inputs(node: Node) -> list[Node | None]:
    return [source for source, _ in node.next_functions]


def _is_quotient(node: Node) -> bool:
    """Whether the node is exp(z) / Σ exp(z), as `softmax` of this package computes it."""
    if _kind(node) != "DivBackward":
        return False
    numerator, denominator = _inputs(node)
    if numerator is None or denominator is None or _kind(numerator) != "ExpBackward":
        return False
    return _kind(denominator) == "SumBackward" and _inputs(denominator)[0] is numerator
