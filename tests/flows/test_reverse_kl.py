from collections.abc import Callable
from copy import deepcopy
from math import log, pi

import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal, kl_divergence

from parnassus.flows import Chain, Flow, GaussianBase
from parnassus.flows.residual.lipschitz_networks import contractive_mlp
from parnassus.flows.residual.residual_flow import residual_flow
from parnassus.flows.reverse_kl import estimate_evidence, path_gradient_reverse_kl, reverse_kl

LOG_Z = 1.7


def trainable_gaussian() -> Flow:
    """A flow without transform whose base is N(½, e^0.6) in two coordinates."""
    base = GaussianBase((2,), trainable=True)
    with torch.no_grad():
        base.mean.add_(0.5)
        base.log_std.add_(0.3)
    return Flow(Chain(), base).double()


def make_target() -> Distribution:
    return Independent(Normal(torch.tensor([1.0, -1.0]).double(), torch.tensor([0.8, 2.0]).double()), 1)


def log_target(x: Tensor) -> Tensor:
    log_prob: Tensor = make_target().log_prob(x)
    return log_prob + LOG_Z


def test_loss_is_the_divergence_minus_log_z() -> None:
    torch.manual_seed(0)
    flow = trainable_gaussian()
    expected = kl_divergence(flow.base(), make_target())
    with torch.no_grad():
        divergence = reverse_kl(flow, log_target, 400_000) + LOG_Z
    torch.testing.assert_close(divergence, expected.detach(), rtol=0.01, atol=0)


@pytest.mark.parametrize("loss", [reverse_kl, path_gradient_reverse_kl])
def test_gradients_of_the_base_match_closed_form(loss: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    flow = trainable_gaussian()
    parameters = list(flow.parameters())
    expected = torch.autograd.grad(kl_divergence(flow.base(), make_target()), parameters)
    gradients = torch.autograd.grad(loss(flow, log_target, 400_000), parameters)
    for actual_gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(actual_gradient, expected_gradient, rtol=0.02, atol=0.01)


def test_both_losses_have_the_same_value() -> None:
    flow = Flow(residual_flow([contractive_mlp((2, 8, 2))]), GaussianBase((2,))).double()
    torch.manual_seed(0)
    full_gradient = reverse_kl(flow, log_target, 50)
    torch.manual_seed(0)
    path_gradient = path_gradient_reverse_kl(flow, log_target, 50)
    torch.testing.assert_close(full_gradient, path_gradient)


def test_only_the_path_gradient_vanishes_at_the_target() -> None:
    torch.manual_seed(0)
    flow = trainable_gaussian()
    frozen = deepcopy(flow).requires_grad_(requires_grad=False)
    path_gradient = torch.autograd.grad(path_gradient_reverse_kl(flow, frozen.log_prob, 30), list(flow.parameters()))
    assert max(float(part.abs().max()) for part in path_gradient) < 1e-12
    full_gradient = torch.autograd.grad(reverse_kl(flow, frozen.log_prob, 30), list(flow.parameters()))
    assert max(float(part.abs().max()) for part in full_gradient) > 0.01


def test_importance_sampling_estimates_the_bounded_log_z() -> None:
    torch.manual_seed(0)
    flow = Flow(Chain(), GaussianBase((2,)).double())

    def log_density(x: Tensor) -> Tensor:  # Z = 2π · 0.25
        return -x.square().sum(1) / 0.5

    expected = log(0.5 * pi)
    estimate = estimate_evidence(flow, log_density, 100_000)
    assert abs(float(estimate.log_evidence) - expected) < 4 * float(estimate.relative_standard_error)
    assert -float(reverse_kl(flow, log_density, 10_000)) < float(estimate.log_evidence) - 0.5
    assert 1 < float(estimate.effective_sample_size) < 100_000


def test_count_of_zero_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least 1; got count=0"):
        reverse_kl(trainable_gaussian(), log_target, 0)
