"""Slopes of laws, written out, are those that autograd finds."""

import pytest
import torch

from parnassus.reinforcement.law_slopes import law_slopes
from parnassus.reinforcement.laws import Choice, Spread


@pytest.mark.parametrize("of_entropy", [0.0, -0.3])
def test_of_a_choice(of_entropy: float) -> None:
    torch.manual_seed(0)
    logits, given = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True), torch.randn(2, 9).double()
    law, actions = Choice(logits), torch.randint(4, (2, 9))
    pulled = (given * law.log_prob(actions)).sum() + of_entropy * law.entropy().sum()
    (known,) = torch.autograd.grad(pulled, logits)
    found = law_slopes(Choice(logits.detach()), actions, given, of_entropy)
    torch.testing.assert_close(found.answer, known, atol=1e-13, rtol=0)
    assert found.log_std is None


@pytest.mark.parametrize("of_entropy", [0.0, -0.3])
def test_of_a_spread(of_entropy: float) -> None:
    torch.manual_seed(0)
    mean, given = torch.randn(2, 9, 3, dtype=torch.float64, requires_grad=True), torch.randn(2, 9).double()
    log_std = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True)
    law, actions = Spread(mean, log_std), torch.randn(2, 9, 3).double()
    pulled = (given * law.log_prob(actions)).sum() + of_entropy * law.entropy().sum()
    known = torch.autograd.grad(pulled, [mean, log_std])
    found = law_slopes(Spread(mean.detach(), log_std.detach()), actions, given, of_entropy)
    assert found.log_std is not None
    torch.testing.assert_close(found.answer, known[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(found.log_std.sum(1, keepdim=True), known[1], atol=1e-12, rtol=0)
