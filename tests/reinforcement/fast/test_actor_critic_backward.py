"""Fast forward and backward pass of actor and critic compared with autograd."""

import torch

from parnassus.reinforcement.agents.action_distributions import Categorical
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.stacked_networks import Layer
from parnassus.reinforcement.environments.interface import Discrete
from parnassus.reinforcement.fast.actor_critic_backward import write_gradients


def layer_pairs(model: ActorCritic) -> list[Layer]:
    """Hidden layers, then the heads, in order of registration."""
    parameters = list(model.parameters())
    return list(zip(parameters[::2], parameters[1::2], strict=True))


def test_outputs_and_gradients_match_autograd() -> None:
    """Gradients of all rows and of the first rows only."""
    torch.manual_seed(0)
    model, x = ActorCritic(4, Discrete(3), hidden=(16, 16, 8), num_learners=2).double(), torch.randn(2, 30, 4).double()
    for rows in (30, 20):
        output_gradient, value_gradient = torch.randn(2, rows, 3).double(), torch.randn(2, rows).double()
        distribution, values = model(x)
        assert isinstance(distribution, Categorical)
        loss = (distribution.logits[:, :rows] * output_gradient).sum() + (values[:, :rows] * value_gradient).sum()
        expected = torch.autograd.grad(loss, list(model.parameters()))
        activations = model.forward_with_activations(x)
        torch.testing.assert_close(activations.outputs, distribution.logits.detach(), atol=1e-13, rtol=0)
        torch.testing.assert_close(activations.values[..., 0], values.detach(), atol=1e-13, rtol=0)
        for _ in range(2):  # gradients are overwritten, not accumulated
            write_gradients(activations, layer_pairs(model), output_gradient, value_gradient[..., None])
        torch.testing.assert_close(
            [parameter.grad for parameter in model.parameters()], list(expected), atol=1e-12, rtol=0
        )


def test_zero_value_gradient_leaves_the_critic_without_gradient() -> None:
    model, x = ActorCritic(4, Discrete(3)), torch.randn(1, 5, 4)
    write_gradients(model.forward_with_activations(x), layer_pairs(model), torch.ones(1, 5, 3), torch.zeros(1, 5, 1))
    gradient = model.hidden[0].weight.grad
    assert isinstance(gradient, torch.Tensor)
    assert bool((gradient[0] != 0).any())
    assert not bool((gradient[1] != 0).any())


def test_tanh_is_accurate_for_small_inputs() -> None:
    """tanh(x) ≈ x near 0, where 2σ(2x) − 1 rounds to a multiple of 2⁻²⁴."""
    model = ActorCritic(1, Discrete(2), hidden=(4,))
    x = torch.linspace(-1e-3, 1e-3, 101).view(1, -1, 1)
    with torch.no_grad():
        error = (model.forward_with_activations(x).values[..., 0] - model.values(x)).abs().max()
    assert float(error) < 1e-6
