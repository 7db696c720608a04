"""The classifier: its loss, its evaluation, its dead logits."""

from math import log

import pytest
import torch
from torch import nn
from torch.nn import functional

from parnassus.layers import (
    Classifier,
    batch_norm_classifier,
    count_parameters,
    dead_logits,
    dense_classifier,
    dropout_classifier,
    evaluate,
    identity,
    relu,
    require_labels,
)

X, Y = torch.randn(30, 1, 4, 4, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3


def test_the_loss_is_the_loss_of_torch() -> None:
    model = dense_classifier(16, 3, hidden=(8,))
    torch.testing.assert_close(model.loss(X, Y), functional.cross_entropy(model(X), Y))


def test_the_book_network_has_the_shape_of_the_listing() -> None:
    model = dense_classifier(784, 10, output=relu)
    assert count_parameters(model) == 669_706
    logits = model(torch.randn(5, 1, 28, 28))
    assert logits.shape == (5, 10)
    assert float(logits.detach().min()) >= 0
    assert float(dense_classifier(784, 10)(torch.randn(50, 1, 28, 28)).detach().min()) < 0


def test_every_parameter_gets_a_gradient_and_survives_a_round_trip() -> None:
    torch.manual_seed(0)
    model, other = (dense_classifier(16, 3, hidden=(8, 8), output=identity) for _ in range(2))
    model.loss(X, Y).backward()
    assert all(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in model.parameters())
    other.load_state_dict(model.state_dict())
    assert torch.equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize("batch_size", [1, 7, 30, 1_000])
def test_evaluation_does_not_depend_on_the_batch_size(batch_size: int) -> None:
    torch.manual_seed(0)
    model = dense_classifier(16, 3, hidden=(8,))
    found = evaluate(model, X, Y, batch_size=batch_size)
    assert found.loss == pytest.approx(float(functional.cross_entropy(model(X), Y).detach()), rel=1e-5)
    assert found.accuracy == pytest.approx(float((model.predict(X) == Y).float().mean()))


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_leaves_the_mode_and_the_gradients_alone(training: bool) -> None:
    model = Classifier(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 3))).train(training)
    evaluate(model, X, Y)
    assert model.training is training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_constant_network_has_loss_ln_classes_and_guesses() -> None:
    model = dense_classifier(16, 3, hidden=(8,))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    found = evaluate(model, X, Y)
    assert found.loss == pytest.approx(log(3), rel=1e-6)
    assert found.accuracy == pytest.approx(1 / 3)
    assert dead_logits(model, X).tolist() == [0, 1, 2]


def test_no_logit_is_dead_without_the_last_relu() -> None:
    torch.manual_seed(0)
    assert dead_logits(dense_classifier(16, 3), X).tolist() == []


def test_an_empty_set_raises() -> None:
    with pytest.raises(ValueError, match="at least one example"):
        evaluate(dense_classifier(16, 3), X[:0], Y[:0])


def test_data_without_labels_raise() -> None:
    assert require_labels(Y, 3) is Y
    with pytest.raises(ValueError, match="got 0 classes"):
        require_labels(None, 0)
    with pytest.raises(ValueError, match="got 1 classes"):
        require_labels(Y, 1)


def test_the_book_with_batch_normalisation_or_dropout_layer_by_layer() -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 1, 2, 3)
    for ours, theirs in (
        (batch_norm_classifier(6, 4, hidden=(5, 7)), nn.BatchNorm1d),
        (dropout_classifier(6, 4, hidden=(5, 7), rates=(0.2, 0.5)), nn.Identity),
    ):
        linear = nn.Linear(6, 5), nn.Linear(5, 7), nn.Linear(7, 4)
        for layer, name in zip(linear, ("1.0", "2.0", "3"), strict=True):
            layer.weight.data = ours.get_parameter(f"network.{name}.weight").data.mT
            layer.bias.data = ours.get_parameter(f"network.{name}.bias").data
        first, second, last = linear
        twin = nn.Sequential(nn.Flatten(), first, nn.ReLU(), theirs(5), second, nn.ReLU(), theirs(7), last)
        if isinstance(twin[3], nn.BatchNorm1d):
            torch.testing.assert_close(ours(x), twin(x))
        torch.testing.assert_close(ours.eval()(x), twin.eval()(x))
    assert repr(dropout_classifier(6, 4)).count("Dropout(rate=0.") == 2


def test_a_hidden_layer_without_a_rate_raises() -> None:
    with pytest.raises(ValueError, match=r"one entry per hidden layer; got hidden=\(5, 7\), rates=\(0.2,\)"):
        dropout_classifier(6, 4, hidden=(5, 7), rates=(0.2,))


def test_an_empty_batch_has_no_loss() -> None:
    with pytest.raises(ValueError, match="at least one example; got an empty batch"):
        dense_classifier(4, 3, hidden=(5,)).loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
