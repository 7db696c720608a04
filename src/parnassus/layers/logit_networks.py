"""A check that a network ends in logits, for models whose loss applies the sigmoid or the softmax."""

import torch
from torch import nn

from parnassus.layers.activations import sigmoid
from parnassus.layers.dense import Dense
from parnassus.losses.classification import softmax

PROBABILITY_LAYERS = (nn.Sigmoid, nn.Hardsigmoid, nn.LogSigmoid, nn.Softmax, nn.Softmax2d)
PROBABILITY_FUNCTIONS = (sigmoid, softmax, torch.sigmoid, nn.functional.sigmoid, torch.softmax, nn.functional.softmax)
SHAPE_LAYERS = (nn.Dropout, nn.Flatten, nn.Identity, nn.Unflatten)
"""Layers that leave it open whether their input is a logit."""


def check_logit_network(network: nn.Module) -> None:
    """Raise a ValueError if the last layer of the network is a sigmoid or a softmax.

    Networks with a `forward` of their own are not analysed; `check_logits` in the loss detects these.
    """
    last = last_layer(network)
    activation = last.activation if isinstance(last, Dense) else None
    if isinstance(last, PROBABILITY_LAYERS) or activation in PROBABILITY_FUNCTIONS:
        raise ValueError(
            "the network must return logits, to which the model applies the sigmoid or the softmax; "
            f"got a network that ends in {last}: remove this activation"
        )


def last_layer(network: nn.Module) -> nn.Module:
    """The last layer of nested `nn.Sequential`s that computes more than a shape; otherwise the network itself."""
    if not isinstance(network, nn.Sequential):
        return network
    layers = [layer for layer in network if not isinstance(layer, SHAPE_LAYERS)]
    return last_layer(layers[-1]) if layers else network
