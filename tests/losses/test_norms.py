"""Norms against torch, and counterexamples for functions that are not norms."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from parnassus.losses import find_norm_violation, l1_norm, l2_norm, p_norm
from parnassus.probability import standard_normal

X = standard_normal(5, 7)


@pytest.mark.parametrize("order", [1.0, 1.7, 2.0, 6.0, torch.inf])
def test_norms_match_torch(order: float) -> None:
    torch.testing.assert_close(p_norm(X, order=order), torch.linalg.vector_norm(X, order, dim=-1))
    torch.testing.assert_close(l1_norm(X), torch.linalg.vector_norm(X, 1, dim=-1))
    torch.testing.assert_close(l2_norm(X), torch.linalg.vector_norm(X, 2, dim=-1))


def test_large_orders_and_large_entries_do_not_overflow() -> None:
    assert float(p_norm(torch.tensor([3e30, -4e30]), order=100.0)) == pytest.approx(4e30)
    assert p_norm(torch.zeros(2, 3), order=3.0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("order", [0.5, 0.0, -2.0, float("nan")])
def test_orders_below_one_raise_value_error(order: float) -> None:
    with pytest.raises(
        ValueError, match="order must be at least 1, below which the triangle inequality fails; got order="
    ):
        p_norm(X, order=order)


CANDIDATES: list[tuple[Callable[[Tensor], Tensor], str]] = [
    (lambda x: x.square().sum(-1), "‖αx‖ = |α| ‖x‖"),
    (lambda x: (x != 0).double().sum(-1), "‖αx‖ = |α| ‖x‖"),
    (lambda x: x.sum(-1), "‖x‖ > 0"),
    (lambda x: x[..., 0].abs(), "‖x‖ > 0"),
    (lambda x: x.abs().sum(-1) + 1, "‖0‖ = 0"),
    (lambda x: x.abs().sqrt().sum(-1).square(), "‖x + y‖ ≤ ‖x‖ + ‖y‖"),
    (lambda x: x.abs().sum(-1).exp() * torch.nan, "‖0‖ = 0"),
]


@pytest.mark.parametrize(("candidate", "axiom"), CANDIDATES)
def test_violated_axiom_is_reported_with_a_counterexample(candidate: Callable[[Tensor], Tensor], axiom: str) -> None:
    violation = find_norm_violation(candidate, 4, generator=torch.Generator().manual_seed(0))
    assert violation is not None
    assert violation.axiom == axiom
    assert axiom in str(violation)
    if "+" in axiom:
        x, y = violation.counterexample["x"], violation.counterexample["y"]
        assert float(candidate(x + y)) == violation.left > violation.right == float(candidate(x) + candidate(y))


def test_norms_have_no_violation() -> None:
    root = standard_normal(4, 4, seed=1)
    for norm in (l1_norm, l2_norm, lambda x: l2_norm(x @ root), lambda x: l1_norm(x) + 3 * p_norm(x, order=torch.inf)):
        assert find_norm_violation(norm, 4, generator=torch.Generator().manual_seed(0)) is None


def test_invalid_input_raises_value_error() -> None:
    generator = torch.Generator()
    with pytest.raises(ValueError, match="at least 1; got dim=0, num_trials=5"):
        find_norm_violation(l1_norm, 0, generator=generator, num_trials=5)
    with pytest.raises(ValueError, match=r"one value per vector; got shape \(6, 2\) for 6 vectors"):
        find_norm_violation(torch.abs, 2, generator=generator, num_trials=6)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0, torch.inf])
def test_gradients_match_torch_and_are_zero_at_the_origin(order: float) -> None:
    x = X.clone()
    x[1], x[2, :3] = 0, 0
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    p_norm(ours, order=order).sum().backward()
    torch.linalg.vector_norm(theirs, order, dim=-1).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert not bool(ours.grad[1].any())


def test_l2_norm_neither_overflows_nor_underflows() -> None:
    x = torch.tensor([[3e30, 4e30], [3e-30, 4e-30], [torch.inf, 1.0]], requires_grad=True)
    norm = l2_norm(x)
    torch.testing.assert_close(norm[:2], torch.tensor([5e30, 5e-30]))
    assert float(norm[2].detach()) == torch.inf
    norm[:2].sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad[:2], torch.tensor([[0.6, 0.8], [0.6, 0.8]]))
