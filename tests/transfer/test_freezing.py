"""Freezing and unfreezing of parameters."""

import pickle
from copy import deepcopy

import pytest
import torch
from torch import nn

from parnassus.layers.dense import count_parameters
from parnassus.transfer import ReprogrammedModel, TransferClassifier, freeze, unfreeze


def body_with_modes() -> nn.Sequential:
    """A network whose function differs between training and evaluation mode."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4))


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


@pytest.mark.parametrize("kind", ["TransferClassifier", "ReprogrammedModel"])
def test_frozen_body_is_a_fixed_function_in_training_mode(kind: str) -> None:
    body = body_with_modes()
    x = torch.randn(16, 3)
    expected = body.eval()(x)
    before = {name: value.clone() for name, value in body.state_dict().items()}
    body.train()
    model = (
        TransferClassifier(freeze(body), nn.Linear(4, 2))
        if kind == "TransferClassifier"
        else ReprogrammedModel(body, nn.Linear(3, 3), torch.tensor([0, 1]))
    )
    model.train()
    model.loss(x, torch.randint(2, (16,)))
    assert model.training
    assert not any(layer.training for layer in body.modules())
    torch.testing.assert_close(body(x), expected)
    for name, value in body.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_unfrozen_layer_in_a_frozen_body_follows_the_mode_of_the_model() -> None:
    body = freeze(body_with_modes())
    unfreeze(body[1])
    model = TransferClassifier(body, nn.Linear(4, 2)).train()
    assert [layer.training for layer in body] == [False, True, False, False]
    model.eval()
    assert not any(layer.training for layer in model.modules())
    unfreeze(body)
    assert all(layer.training for layer in model.train().modules())


@pytest.mark.parametrize("copy", [deepcopy, lambda module: pickle.loads(pickle.dumps(module))], ids=["copy", "pickle"])
def test_copy_of_a_frozen_body_is_frozen_and_independent(copy: object) -> None:
    body = freeze(body_with_modes())
    assert callable(copy)
    copied = copy(body)
    unfreeze(body)
    assert not any(layer.training for layer in copied.train().modules())
    assert all(layer.training for layer in unfreeze(copied).modules())
