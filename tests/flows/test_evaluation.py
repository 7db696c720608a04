"""Evaluation of flows against Gaussians, whose likelihood and divergence are known."""

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from parnassus.flows import Chain, Flow, GaussianBase, LinearFlow, PLUMatrix, nll_and_divergence, round_trip_error


def test_nll_and_divergence_match_gaussians() -> None:
    torch.manual_seed(0)
    target, model = (Independent(Normal(torch.zeros(2).double(), std), 1) for std in (2.0, 1.0))
    x = target.sample((200_000,))
    flow = Flow(Chain(), GaussianBase((2,)).double())
    metrics = nll_and_divergence(flow, x, target.log_prob)
    assert metrics["test_nll"] == pytest.approx(-float(model.log_prob(x).mean()))
    assert metrics["divergence"] == pytest.approx(float(kl_divergence(target, model)), abs=0.02)
    assert set(nll_and_divergence(flow, x, None)) == {"test_nll"}


def test_round_trip_error_detects_an_incorrect_inverse() -> None:
    torch.manual_seed(0)
    linear = LinearFlow(PLUMatrix(torch.randn(4, 4, dtype=torch.float64))).double()
    flow, x = Flow(linear, GaussianBase((4,)).double()), torch.randn(50, 4, dtype=torch.float64)
    with torch.no_grad():
        assert round_trip_error(flow, x) < 1e-10
        linear.inverse = lambda x: (x, x.new_zeros(len(x)))  # type: ignore[method-assign]
        assert round_trip_error(flow, x) > 0.1
