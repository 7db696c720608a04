"""Classifiers: loss, evaluation and dead logits."""

from math import log

import pytest
import torch
from torch import nn
from torch.nn import functional

from parnassus.layers import (
    Classifier,
    batch_norm_classifier,
    check_labels,
    count_parameters,
    dead_logits,
    dense_classifier,
    dropout_classifier,
    evaluate,
    identity,
    relu,
)

X, Y = torch.randn(30, 1, 4, 4, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3


def test_loss_matches_torch() -> None:
    model = dense_classifier(16, 3, hidden=(8,))
    torch.testing.assert_close(model.loss(X, Y), functional.cross_entropy(model(X), Y))


def test_dense_classifier_has_known_shape_and_number_of_parameters() -> None:
    model = dense_classifier(784, 10, output=relu)
    assert count_parameters(model) == 669_706
    logits = model(torch.randn(5, 1, 28, 28))
    assert logits.shape == (5, 10)
    assert float(logits.detach().min()) >= 0
    assert float(dense_classifier(784, 10)(torch.randn(50, 1, 28, 28)).detach().min()) < 0


def test_all_parameters_receive_gradients_and_state_dict_round_trips() -> None:
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
    result = evaluate(model, X, Y, batch_size=batch_size)
    assert result.loss == pytest.approx(float(functional.cross_entropy(model(X), Y).detach()), rel=1e-5)
    assert result.accuracy == pytest.approx(float((model.predict(X) == Y).float().mean()))


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_preserves_mode_and_gradients(training: bool) -> None:
    model = Classifier(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 3))).train(training)
    evaluate(model, X, Y)
    assert model.training is training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_constant_network_has_chance_loss_and_accuracy() -> None:
    model = dense_classifier(16, 3, hidden=(8,))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    result = evaluate(model, X, Y)
    assert result.loss == pytest.approx(log(3), rel=1e-6)
    assert result.accuracy == pytest.approx(1 / 3)
    assert dead_logits(model, X).tolist() == [0, 1, 2]


def test_no_logit_is_dead_without_a_final_relu() -> None:
    torch.manual_seed(0)
    assert dead_logits(dense_classifier(16, 3), X).tolist() == []


def test_evaluating_an_empty_dataset_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one example"):
        evaluate(dense_classifier(16, 3), X[:0], Y[:0])


def test_data_without_labels_raises_value_error() -> None:
    assert check_labels(Y, 3) is Y
    with pytest.raises(ValueError, match="got 0 classes"):
        check_labels(None, 0)
    with pytest.raises(ValueError, match="got 1 classes"):
        check_labels(Y, 1)


def test_batch_norm_and_dropout_classifiers_match_torch() -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 1, 2, 3)
    for model, make_norm in (
        (batch_norm_classifier(6, 4, hidden=(5, 7)), nn.BatchNorm1d),
        (dropout_classifier(6, 4, hidden=(5, 7), rates=(0.2, 0.5)), nn.Identity),
    ):
        linear = nn.Linear(6, 5), nn.Linear(5, 7), nn.Linear(7, 4)
        for layer, name in zip(linear, ("1.0", "2.0", "3"), strict=True):
            layer.weight.data = model.get_parameter(f"network.{name}.weight").data.mT
            layer.bias.data = model.get_parameter(f"network.{name}.bias").data
        first, second, last = linear
        reference = nn.Sequential(nn.Flatten(), first, nn.ReLU(), make_norm(5), second, nn.ReLU(), make_norm(7), last)
        if isinstance(reference[3], nn.BatchNorm1d):
            torch.testing.assert_close(model(x), reference(x))
        torch.testing.assert_close(model.eval()(x), reference.eval()(x))
    assert repr(dropout_classifier(6, 4)).count("Dropout(rate=0.") == 2


def test_missing_dropout_rate_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"one entry per hidden layer; got hidden=\(5, 7\), rates=\(0.2,\)"):
        dropout_classifier(6, 4, hidden=(5, 7), rates=(0.2,))


def test_loss_of_an_empty_batch_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one example; got an empty batch"):
        dense_classifier(4, 3, hidden=(5,)).loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
