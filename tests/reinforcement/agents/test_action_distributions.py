"""Laws of actions beside torch.distributions."""

import torch
from torch import distributions

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian


def test_a_choice_is_categorical() -> None:
    logits, other = torch.randn(3, 5, 4), torch.randn(3, 5, 4)
    law, known = Categorical(logits), distributions.Categorical(logits=logits)
    action = torch.randint(4, (3, 5))
    assert torch.allclose(law.log_prob(action), known.log_prob(action), atol=1e-6)
    assert torch.allclose(law.entropy(), known.entropy(), atol=1e-6)
    assert torch.allclose(
        law.kl(Categorical(other)),
        distributions.kl_divergence(known, distributions.Categorical(logits=other)),
        atol=1e-6,
    )
    assert torch.equal(law.mode(), logits.argmax(-1))


def test_choices_are_drawn_as_often_as_they_should() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 1.0, -2.0])
    drawn = Categorical(logits.expand(40_000, 3)).sample()
    shares = drawn.bincount(minlength=3) / 40_000
    assert torch.allclose(shares, logits.softmax(0), atol=4 * (0.25 / 40_000) ** 0.5)


def test_a_spread_is_normal() -> None:
    mean, log_std, other = torch.randn(2, 6, 3), torch.randn(2, 1, 3) / 3, torch.randn(2, 6, 3)
    law, known = (
        DiagonalGaussian(mean, log_std),
        distributions.Independent(distributions.Normal(mean, log_std.exp().expand_as(mean)), 1),
    )
    action = torch.randn(2, 6, 3)
    assert torch.allclose(law.log_prob(action), known.log_prob(action), atol=1e-5)
    assert torch.allclose(law.entropy(), known.entropy(), atol=1e-5)
    wider = DiagonalGaussian(other, log_std + 0.3)
    assert torch.allclose(
        law.kl(wider),
        distributions.kl_divergence(
            known, distributions.Independent(distributions.Normal(other, wider.log_std.exp().expand_as(mean)), 1)
        ),
        atol=1e-5,
    )
    torch.manual_seed(0)
    drawn = DiagonalGaussian(torch.tensor([1.0]).expand(40_000, 1), torch.tensor([0.5])).sample()
    assert abs(float(drawn.mean()) - 1) < 0.03
    assert abs(float(drawn.std()) - 1.6487) < 0.03
