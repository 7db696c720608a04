"""Actor and critic in one pass: what `law` and `values` say one by one, gradients included."""

import torch

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.both_heads import pull_back
from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.laws import Choice
from parnassus.reinforcement.stacked import Layer


def layers(model: ActorCritic) -> list[Layer]:
    """Hidden ones, then the heads, as they are registered."""
    parameters = list(model.parameters())
    return list(zip(parameters[::2], parameters[1::2], strict=True))


def test_it_says_what_both_say_alone() -> None:
    """And the gradient written out is the one that autograd finds, of all rows and of the first ones."""
    torch.manual_seed(0)
    model, x = ActorCritic(4, Discrete(3), hidden=(16, 16, 8), learners=2).double(), torch.randn(2, 30, 4).double()
    for rows in (30, 20):
        of_answer, of_value = torch.randn(2, rows, 3).double(), torch.randn(2, rows).double()
        law, values = model(x)
        assert isinstance(law, Choice)
        loss = (law.logits[:, :rows] * of_answer).sum() + (values[:, :rows] * of_value).sum()
        wanted = torch.autograd.grad(loss, list(model.parameters()))
        trace = model.traced(x)
        torch.testing.assert_close(trace.answer, law.logits.detach(), atol=1e-13, rtol=0)
        torch.testing.assert_close(trace.value[..., 0], values.detach(), atol=1e-13, rtol=0)
        for _ in range(2):  # written anew, not added
            pull_back(trace, layers(model), of_answer, of_value[..., None])
        torch.testing.assert_close([own.grad for own in model.parameters()], list(wanted), atol=1e-12, rtol=0)


def test_the_actor_alone_learns_where_the_critic_is_left_out() -> None:
    model, x = ActorCritic(4, Discrete(3)), torch.randn(1, 5, 4)
    pull_back(model.traced(x), layers(model), torch.ones(1, 5, 3), torch.zeros(1, 5, 1))
    first = model.hidden[0].weight.grad
    assert isinstance(first, torch.Tensor)
    assert bool((first[0] != 0).any())
    assert not bool((first[1] != 0).any())


def test_a_small_input_keeps_its_slope() -> None:
    """Tanh x ≈ x near 0, where 2σ(2x) − 1 rounds to a multiple of 2⁻²⁴: the error stays that small."""
    model = ActorCritic(1, Discrete(2), hidden=(4,))
    x = torch.linspace(-1e-3, 1e-3, 101).view(1, -1, 1)
    with torch.no_grad():
        off = (model.traced(x).value[..., 0] - model.values(x)).abs().max()
    assert float(off) < 1e-6
