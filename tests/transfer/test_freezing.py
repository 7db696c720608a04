"""Freezing and unfreezing of parameters."""

import torch
from torch import nn

from parnassus.layers.dense import count_parameters
from parnassus.transfer import TransferClassifier, freeze, unfreeze


def test_frozen_body_receives_no_gradients_but_propagates_them() -> None:
    torch.manual_seed(0)
    body, head = freeze(nn.Linear(3, 4)), nn.Linear(4, 2)
    x = torch.randn(5, 3, requires_grad=True)
    TransferClassifier(body, head).loss(x, torch.tensor([0, 1, 0, 1, 1])).backward()
    assert all(weight.grad is None for weight in body.parameters())
    assert all(weight.grad is not None for weight in head.parameters())
    assert x.grad is not None
    assert float(x.grad.abs().max()) > 0


def test_unfrozen_layers_are_trainable_again() -> None:
    body = freeze(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
    assert count_parameters(body) == 0
    unfreeze(body[1])
    assert count_parameters(body) == 10
    assert count_parameters(unfreeze(body)) == 26
