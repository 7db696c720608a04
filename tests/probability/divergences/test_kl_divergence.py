"""Divergences of tables against SciPy and torch, and for probabilities equal to zero."""

from math import inf, log

import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as scipy_entropy
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl

from parnassus.probability import (
    cross_entropy_between,
    entropy,
    jeffreys_divergence,
    jensen_shannon_divergence,
    kl_divergence,
)

GENERATOR = torch.Generator().manual_seed(0)
P = torch.randn(20, 5, generator=GENERATOR, dtype=torch.float64).softmax(-1)
Q = torch.randn(20, 5, generator=GENERATOR, dtype=torch.float64).softmax(-1)
HALVES = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
OTHER = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)


@pytest.mark.parametrize("base", [2.0, 10.0])
def test_divergences_match_scipy_for_any_base(base: float) -> None:
    torch.testing.assert_close(
        kl_divergence(P, Q, base=base), torch.from_numpy(scipy_entropy(P, Q, axis=-1, base=base))
    )
    torch.testing.assert_close(
        jensen_shannon_divergence(P, Q, base=base), torch.from_numpy(jensenshannon(P, Q, axis=-1, base=base)).square()
    )


def test_divergences_in_nats_match_torch() -> None:
    torch.testing.assert_close(kl_divergence(P, Q), torch_kl(Categorical(P), Categorical(Q)))
    torch.testing.assert_close(cross_entropy_between(P, Q), entropy(P) + kl_divergence(P, Q))


def test_jeffreys_divergence_matches_its_definition() -> None:
    torch.testing.assert_close(jeffreys_divergence(P, Q), ((P - Q) * (P / Q).log()).sum(-1))


def test_divergences_with_zero_probabilities() -> None:
    assert float(kl_divergence(HALVES, OTHER)) == pytest.approx(log(2))
    assert float(kl_divergence(OTHER, HALVES)) == inf
    assert float(cross_entropy_between(OTHER, HALVES)) == inf
    assert float(jeffreys_divergence(HALVES, OTHER)) == inf
    assert float(jensen_shannon_divergence(HALVES, HALVES.flip(0))) == pytest.approx(log(2) / 2)


def test_gradients_are_finite_where_both_probabilities_are_zero() -> None:
    p = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.25, 0.5, 0.25, 0.0], dtype=torch.float64, requires_grad=True)
    (kl_divergence(p, q) + jensen_shannon_divergence(p, q)).backward()
    assert p.grad is not None
    assert q.grad is not None
    assert bool(p.grad.isfinite().all())
    assert bool(q.grad.isfinite().all())


def test_gradient_in_q_matches_closed_form() -> None:
    q = Q.clone().requires_grad_()
    kl_divergence(P, q).sum().backward()
    torch.testing.assert_close(q.grad, -P / Q)


@pytest.mark.parametrize(
    "divergence", [kl_divergence, cross_entropy_between, jeffreys_divergence, jensen_shannon_divergence]
)
def test_invalid_input_raises_value_error(divergence: object) -> None:
    assert callable(divergence)
    with pytest.raises(ValueError, match="must sum to one"):
        divergence(P, 0.9 * Q)
    with pytest.raises(ValueError, match="must not be negative or NaN"):
        divergence(-P, Q)
    with pytest.raises(ValueError, match="positive and not 1; got base=1"):
        divergence(P, Q, base=1.0)
