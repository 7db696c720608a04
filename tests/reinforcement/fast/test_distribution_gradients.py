"""Hand-written gradients of distributions are those of autograd."""

import pytest
import torch

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.fast.distribution_gradients import distribution_gradients


@pytest.mark.parametrize("of_entropy", [0.0, -0.3])
def test_of_a_categorical(of_entropy: float) -> None:
    torch.manual_seed(0)
    logits, given = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True), torch.randn(2, 9).double()
    law, actions = Categorical(logits), torch.randint(4, (2, 9))
    pulled = (given * law.log_prob(actions)).sum() + of_entropy * law.entropy().sum()
    (known,) = torch.autograd.grad(pulled, logits)
    found = distribution_gradients(Categorical(logits.detach()), actions, given, of_entropy)
    torch.testing.assert_close(found.outputs, known, atol=1e-13, rtol=0)
    assert found.log_std is None


@pytest.mark.parametrize("of_entropy", [0.0, -0.3])
def test_of_a_gaussian(of_entropy: float) -> None:
    torch.manual_seed(0)
    mean, given = torch.randn(2, 9, 3, dtype=torch.float64, requires_grad=True), torch.randn(2, 9).double()
    log_std = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True)
    law, actions = DiagonalGaussian(mean, log_std), torch.randn(2, 9, 3).double()
    pulled = (given * law.log_prob(actions)).sum() + of_entropy * law.entropy().sum()
    known = torch.autograd.grad(pulled, [mean, log_std])
    found = distribution_gradients(
        DiagonalGaussian(mean.detach(), log_std.detach()),
        actions,
        given,
        of_entropy,
    )
    assert found.log_std is not None
    torch.testing.assert_close(found.outputs, known[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(found.log_std.sum(1, keepdim=True), known[1], atol=1e-12, rtol=0)
