"""Binary cross-entropy against torch and for extreme logits."""

from inspect import unwrap
from math import log

import pytest
import torch
from torch.nn import functional

from parnassus.losses import binary_cross_entropy, binary_cross_entropy_gradient
from parnassus.probability import standard_normal, uniform_samples

A = 4 * standard_normal(3, 20)
T = uniform_samples(3, 20, seed=1)


def test_matches_torch_for_soft_targets() -> None:
    expected = functional.binary_cross_entropy_with_logits(A, T, reduction="none")
    torch.testing.assert_close(binary_cross_entropy(A, T), expected)


def test_gradient_matches_autograd() -> None:
    a = A.clone().requires_grad_()
    binary_cross_entropy(a, T).sum().backward()
    torch.testing.assert_close(a.grad, binary_cross_entropy_gradient(A, T))


def test_gradient_at_zero_is_one_half_in_magnitude() -> None:
    a = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    binary_cross_entropy(a, torch.tensor([0.0, 1.0], dtype=torch.float64)).sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [0.5, -0.5]


def test_known_values() -> None:
    a = torch.tensor([0.0, 1e4, -1e4, 1e4], dtype=torch.float64)
    t = torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(binary_cross_entropy(a, t), torch.tensor([log(2), 0.0, 1e4, 1e4], dtype=torch.float64))


def test_half_precision_does_not_overflow() -> None:
    assert bool(
        binary_cross_entropy(torch.tensor([6e4, -6e4]).half(), torch.tensor([0.0, 1.0]).half()).isfinite().all()
    )


@pytest.mark.parametrize("target", [-1.0, 2.0, float("nan")])
def test_targets_outside_the_unit_interval_raise_value_error(target: float) -> None:
    targets = torch.tensor([0.0, target])
    for function in (binary_cross_entropy, binary_cross_entropy_gradient):
        with pytest.raises(ValueError, match=r"targets must lie in \[0, 1\]; got"):
            function(torch.zeros(2), targets)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_confident_losses_keep_their_digits(dtype: torch.dtype) -> None:
    """At a logit of 20 the loss is 2·10⁻⁹; log(1 + e^a) − a rounds it to 0 in float32."""
    logits = torch.tensor([20.0, -20.0, 40.0, 3e4], dtype=dtype, requires_grad=True)
    targets = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=dtype)
    margin = ((2 * targets - 1) * logits.detach()).double()
    loss = binary_cross_entropy(logits, targets)
    torch.testing.assert_close(loss.double(), torch.log1p(torch.exp(-margin)), rtol=4 * torch.finfo(dtype).eps, atol=0)
    loss.sum().backward()
    assert logits.grad is not None
    exact = (1 - 2 * targets.double()) * torch.sigmoid(-margin)
    torch.testing.assert_close(logits.grad.double(), exact, rtol=8 * torch.finfo(dtype).eps, atol=0)
    gradient = binary_cross_entropy_gradient(logits.detach(), targets)
    torch.testing.assert_close(gradient.double(), exact, rtol=8 * torch.finfo(dtype).eps, atol=0)


def test_targets_are_not_broadcast() -> None:
    with pytest.raises(ValueError, match=r"logits and targets must have the same shape; got \(5,\) and \(1,\)"):
        unwrap(binary_cross_entropy)(torch.zeros(5), torch.ones(1))  # without the shape checks of the tests
