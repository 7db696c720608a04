"""Actor and critic in one pass equal `distribution` and `values`, and the hand-written gradients autograd's."""

import torch

from parnassus.reinforcement.agents.action_distributions import Categorical
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.stacked_networks import Layer
from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.fast.actor_critic_backward import write_gradients


def layers(model: ActorCritic) -> list[Layer]:
    """Hidden ones, then the heads, as they are registered."""
    parameters = list(model.parameters())
    return list(zip(parameters[::2], parameters[1::2], strict=True))


def test_outputs_and_gradients_are_those_of_autograd() -> None:
    """And the gradient written out is the one that autograd finds, of all rows and of the first ones."""
    torch.manual_seed(0)
    model, x = ActorCritic(4, Discrete(3), hidden=(16, 16, 8), num_learners=2).double(), torch.randn(2, 30, 4).double()
    for rows in (30, 20):
        of_outputs, of_values = torch.randn(2, rows, 3).double(), torch.randn(2, rows).double()
        law, values = model(x)
        assert isinstance(law, Categorical)
        loss = (law.logits[:, :rows] * of_outputs).sum() + (values[:, :rows] * of_values).sum()
        wanted = torch.autograd.grad(loss, list(model.parameters()))
        trace = model.forward_with_trace(x)
        torch.testing.assert_close(trace.outputs, law.logits.detach(), atol=1e-13, rtol=0)
        torch.testing.assert_close(trace.values[..., 0], values.detach(), atol=1e-13, rtol=0)
        for _ in range(2):  # written anew, not added
            write_gradients(trace, layers(model), of_outputs, of_values[..., None])
        torch.testing.assert_close([own.grad for own in model.parameters()], list(wanted), atol=1e-12, rtol=0)


def test_the_actor_alone_learns_where_the_critic_is_left_out() -> None:
    model, x = ActorCritic(4, Discrete(3)), torch.randn(1, 5, 4)
    write_gradients(model.forward_with_trace(x), layers(model), torch.ones(1, 5, 3), torch.zeros(1, 5, 1))
    first = model.hidden[0].weight.grad
    assert isinstance(first, torch.Tensor)
    assert bool((first[0] != 0).any())
    assert not bool((first[1] != 0).any())


def test_a_small_input_keeps_its_slope() -> None:
    """Tanh x ≈ x near 0, where 2σ(2x) − 1 rounds to a multiple of 2⁻²⁴: the error stays that small."""
    model = ActorCritic(1, Discrete(2), hidden=(4,))
    x = torch.linspace(-1e-3, 1e-3, 101).view(1, -1, 1)
    with torch.no_grad():
        off = (model.forward_with_trace(x).values[..., 0] - model.values(x)).abs().max()
    assert float(off) < 1e-6
