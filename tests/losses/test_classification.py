"""Softmax, cross-entropy and accuracy against torch and for extreme logits."""

from inspect import unwrap
from math import log

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from parnassus.losses import (
    accuracy,
    accuracy_per_class,
    cross_entropy,
    log_softmax,
    one_hot,
    soft_cross_entropy,
    softmax,
    softmax_jacobian,
)

GENERATOR = torch.Generator().manual_seed(0)
Z = 5 * torch.randn(2, 6, 4, generator=GENERATOR, dtype=torch.float64)
K = torch.randint(4, (2, 6), generator=GENERATOR)


def test_softmax_matches_torch_for_any_leading_axes() -> None:
    torch.testing.assert_close(softmax(Z), Z.softmax(-1))
    torch.testing.assert_close(log_softmax(Z), Z.log_softmax(-1))


def test_softmax_of_two_classes_is_the_sigmoid_of_the_difference() -> None:
    z = Z[..., :2]
    torch.testing.assert_close(softmax(z)[..., 0], torch.sigmoid(z[..., 0] - z[..., 1]))


def test_masked_classes_have_probability_zero() -> None:
    z = torch.tensor([0.0, -torch.inf, 0.0])
    torch.testing.assert_close(softmax(z), torch.tensor([0.5, 0.0, 0.5]))


def test_jacobian_of_two_equal_logits() -> None:
    torch.testing.assert_close(softmax_jacobian(torch.zeros(2)), torch.tensor([[0.25, -0.25], [-0.25, 0.25]]))


def test_cross_entropy_matches_torch() -> None:
    expected = functional.cross_entropy(Z.flatten(0, 1), K.flatten(), reduction="none").reshape(2, 6)
    torch.testing.assert_close(cross_entropy(Z, K), expected)
    torch.testing.assert_close(soft_cross_entropy(Z, one_hot(K, 4)), expected)


def test_loss_of_soft_labels_is_at_least_their_entropy() -> None:
    y = torch.tensor([0.7, 0.2, 0.1, 0.0], dtype=torch.float64)
    entropy = -(y[:3] * y[:3].log()).sum()
    losses = soft_cross_entropy(Z, y.expand(2, 6, 4))
    assert bool((losses >= entropy).all())
    optimal_logits = y.clamp_min(1e-300).log()
    torch.testing.assert_close(soft_cross_entropy(optimal_logits, y), entropy)


def test_cross_entropy_is_accurate_for_large_logits() -> None:
    loss = cross_entropy(torch.tensor([[0.0, 1e4, 1e4]], dtype=torch.float64), torch.tensor([0]))
    assert float(loss) == pytest.approx(1e4 + log(2))


def test_one_hot_matches_torch() -> None:
    assert torch.equal(one_hot(K, 4), functional.one_hot(K, 4).float())
    assert one_hot(K[:0], 4).shape == (0, 6, 4)


def test_one_hot_with_out_of_range_labels_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"labels must lie between 0 and 3; got 1 to 4"):
        one_hot(torch.tensor([1, 4]), 4)
    with pytest.raises(ValueError, match=r"labels must lie between 0 and 3; got -1 to 0"):
        one_hot(torch.tensor([-1, 0]), 4)


def test_accuracy_has_known_values() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 3.0, 2.0], [1.0, 0.0, 0.0]])
    labels = torch.tensor([0, 1, 2, 0])
    assert float(accuracy(logits, labels)) == 0.75
    assert accuracy_per_class(logits, labels).tolist() == [1.0, 1.0, 0.0]


def test_accuracy_of_a_class_without_examples_is_nan() -> None:
    assert bool(accuracy_per_class(torch.eye(3)[:2], torch.tensor([0, 1]))[2].isnan())


@pytest.mark.parametrize("label", [-1, 10, 99])
def test_cross_entropy_with_out_of_range_labels_raises_value_error(label: int) -> None:
    with pytest.raises(ValueError, match=rf"labels must lie between 0 and 9; got .*{label}"):
        cross_entropy(torch.zeros(2, 10), torch.tensor([3, label]))


@pytest.mark.parametrize(
    ("dtype", "offset"),
    [
        (torch.bfloat16, 100.0),
        (torch.float16, 2_000.0),
        (torch.float32, 1e6),
        (torch.float32, 1e8),
        (torch.float32, -1e8),
    ],
)
def test_an_offset_of_the_logits_does_not_matter(dtype: torch.dtype, offset: float) -> None:
    """The values and gradients of the float64 reference, to the precision of the dtype."""
    exact = torch.tensor([0.0, 0.0, -8.0], dtype=torch.float64, requires_grad=True)
    logits = (exact.detach() + offset).to(dtype).requires_grad_()
    reference = (exact + (logits.detach().double() - offset - exact.detach())).log_softmax(0)
    labels = torch.tensor(1)
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(log_softmax(logits).double(), reference, rtol=tolerance, atol=tolerance)
    cross_entropy(logits, labels).backward()
    (-reference[1]).backward()
    assert logits.grad is not None
    assert exact.grad is not None
    torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=tolerance, atol=tolerance)


def test_confident_losses_keep_their_digits() -> None:
    """At a margin of 40 the loss is e⁻⁴⁰, which log Σ exp − z rounds to 0 in float64 too."""
    logits = torch.tensor([0.0, -40.0], dtype=torch.float64) + 1e3
    assert float(cross_entropy(logits, torch.tensor(1))) == pytest.approx(40.0, rel=1e-15)
    assert float(soft_cross_entropy(logits, torch.tensor([0.0, 1.0], dtype=torch.float64))) == pytest.approx(40.0)


@pytest.mark.parametrize("labels", [torch.tensor([1]), torch.tensor([[1] * 5]), torch.tensor(1), torch.tensor([1] * 4)])
def test_labels_are_not_broadcast(labels: Tensor) -> None:
    logits = torch.zeros(5, 3)
    for function in (cross_entropy, accuracy, accuracy_per_class):
        with pytest.raises(ValueError, match="labels must have the shape of logits without the last axis; got"):
            unwrap(function)(logits, labels)  # without the shape checks of the tests
    with pytest.raises(ValueError, match="logits and probabilities must have the same shape"):
        unwrap(soft_cross_entropy)(logits, torch.tensor([[0.5, 0.5, 0.0]]))
