"""Classifiers: networks with logits, cross-entropy loss and accuracy (book sec. 1.4)."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.layers.activations import Activation, identity, relu
from parnassus.layers.dense import Dense, mlp
from parnassus.layers.dropout import Dropout
from parnassus.layers.evaluation_mode import evaluation_mode
from parnassus.layers.normalisation import norm_after_activation
from parnassus.losses.classification import cross_entropy


class Classifier(nn.Module):
    """A network from examples to logits, with its loss and predictions (book sec. 1.4)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Float[Tensor, "batch *example"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.network(x)
        return logits

    def loss(self, x: Float[Tensor, "batch *example"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Mean cross-entropy over the batch (book eq. 1.20)."""
        if len(x) == 0:
            raise ValueError("loss needs at least one example; got an empty batch")
        return cross_entropy(self(x), y).mean()

    @accepts_arrays
    @torch.no_grad()
    def predict(self, x: Float[Tensor, "batch *example"]) -> Int[Tensor, " batch"]:
        """The class of the largest logit."""
        logits: Tensor = self(x)
        return logits.argmax(-1)


def dense_classifier(
    inputs: int,
    classes: int,
    *,
    hidden: Sequence[int] = (512, 512),
    activation: Activation = relu,
    output: Activation = identity,
) -> Classifier:
    """The book's three-layer classifier of flattened images (book sec. 1.4).

    The book prints `output=relu`: then no logit is negative, and a class whose last pre-activation is negative for
    every input receives no gradient. The identity is correct.
    """
    return Classifier(
        nn.Sequential(nn.Flatten(), *mlp((inputs, *hidden, classes), activation=activation, output=output))
    )


def batch_norm_classifier(
    inputs: int,
    classes: int,
    *,
    hidden: Sequence[int] = (512, 512),
    layer: Callable[[int, int], nn.Module] = norm_after_activation,
    output: Activation = identity,
) -> Classifier:
    """`dense_classifier` with batch normalisation in each hidden layer (book sec. 2.2).

    The listing normalises after the ReLU; `layer=norm_before_activation` is the other order. The book prints
    `output=relu` here too.
    """
    sizes = (inputs, *hidden)
    layers = [layer(before, after) for before, after in pairwise(sizes)]
    return Classifier(nn.Sequential(nn.Flatten(), *layers, Dense(sizes[-1], classes, activation=output)))


def dropout_classifier(
    inputs: int,
    classes: int,
    *,
    hidden: Sequence[int] = (512, 512),
    rates: Sequence[float] = (0.2, 0.5),
    activation: Activation = relu,
    output: Activation = identity,
) -> Classifier:
    """`dense_classifier` with dropout after each hidden layer (book sec. 2.2).

    `hidden=(128,), rates=(0.2,)` is the classifier of (Diehl sec. 1.6). The book prints `output=relu`.
    """
    if len(rates) != len(hidden):
        raise ValueError(
            f"rates must have one entry per hidden layer; got hidden={tuple(hidden)}, rates={tuple(rates)}"
        )
    sizes = (inputs, *hidden)
    layers = [
        nn.Sequential(Dense(before, after, activation=activation), Dropout(rate))
        for (before, after), rate in zip(pairwise(sizes), rates, strict=True)
    ]
    return Classifier(nn.Sequential(nn.Flatten(), *layers, Dense(sizes[-1], classes, activation=output)))


def check_labels(y: Tensor | None, classes: int) -> Tensor:
    """Return the labels; raise a ValueError if there are none or fewer than two classes."""
    if y is None or classes < 2:
        raise ValueError(f"data must have labels of at least two classes; got {classes} classes")
    return y


class Evaluation(NamedTuple):
    loss: float  # mean cross-entropy per example
    accuracy: float  # fraction of examples whose largest logit is that of the label


@torch.no_grad()
@accepts_arrays
def evaluate(
    model: nn.Module, x: Float[Tensor, "count *example"], y: Int[Tensor, " count"], *, batch_size: int = 1_000
) -> Evaluation:
    """Mean loss and accuracy over a data set, in batches and in evaluation mode (book sec. 1.4).

    All examples have the same weight: the book's loop averages batch means, which overweights a smaller last batch, and
    leaves dropout and batch normalisation in training mode. The model's mode is restored afterwards.
    """
    if len(x) == 0:
        raise ValueError("evaluation needs at least one example; got none")
    loss, correct = 0.0, 0
    with evaluation_mode(model):
        for inputs, labels in zip(torch.split(x, batch_size), torch.split(y, batch_size), strict=True):
            logits = model(inputs)
            loss += float(cross_entropy(logits, labels).sum())
            correct += int((logits.argmax(-1) == labels).sum())
    return Evaluation(loss / len(x), correct / len(x))


@torch.no_grad()
def dead_logits(model: nn.Module, x: Float[Tensor, "count *example"]) -> Int[Tensor, " dead"]:
    """The classes whose logit is exactly 0 on all of x, which a final ReLU causes."""
    dead = torch.stack([(model(part) == 0).all(0) for part in torch.split(x, 10_000)]).all(0)
    return dead.nonzero()[:, 0]
