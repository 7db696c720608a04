"""Actor and critic in one pass: what `law` and `values` say one by one, gradients included."""

import torch

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.laws import Choice


def test_it_says_what_both_say_alone() -> None:
    torch.manual_seed(0)
    model, x = ActorCritic(4, Discrete(3), hidden=(16, 16, 8), learners=2).double(), torch.randn(2, 30, 4).double()
    weights = torch.randn(2, 30, 3).double(), torch.randn(2, 30).double()

    law, values = model(x)
    alone, judged = model.law(x), model.values(x)
    assert isinstance(law, Choice)
    assert isinstance(alone, Choice)
    found = torch.autograd.grad((law.logits * weights[0]).sum() + (values * weights[1]).sum(), list(model.parameters()))
    wanted = torch.autograd.grad(
        (alone.logits * weights[0]).sum() + (judged * weights[1]).sum(), list(model.parameters())
    )
    torch.testing.assert_close(law.logits, alone.logits, atol=1e-13, rtol=0)
    torch.testing.assert_close(values, judged, atol=1e-13, rtol=0)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)
    with torch.no_grad():
        assert torch.equal(model(x)[1], values)


def test_the_actor_alone_learns_where_the_critic_is_left_out() -> None:
    model, x = ActorCritic(4, Discrete(3)), torch.randn(1, 5, 4)
    model(x)[0].logits.sum().backward()
    first = model.hidden[0].weight.grad
    assert isinstance(first, torch.Tensor)
    assert bool((first[0] != 0).any())
    assert not bool((first[1] != 0).any())


def test_a_small_input_keeps_its_slope() -> None:
    """Tanh x ≈ x near 0, where 2σ(2x) − 1 rounds to a multiple of 2⁻²⁴: the error stays that small."""
    model = ActorCritic(1, Discrete(2), hidden=(4,))
    x = torch.linspace(-1e-3, 1e-3, 101).view(1, -1, 1)
    with torch.no_grad():
        off = (model(x)[1] - model.values(x)).abs().max()
    assert float(off) < 1e-6
