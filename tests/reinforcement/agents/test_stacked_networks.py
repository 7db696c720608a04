"""Stacked networks: one independent network per learner."""

import pytest
import torch
from torch import nn

from parnassus.reinforcement.agents.stacked_networks import StackedLinear, StackedMLP
from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner


def test_stack_matches_separate_networks() -> None:
    stack = StackedMLP(3, [4, 8, 2])
    x = torch.randn(3, 5, 4)
    outputs = stack(x)
    for learner in range(3):
        output = x[learner]
        weight, bias, last_weight, last_bias = (parameter[learner] for parameter in stack.parameters())
        output = (output @ weight + bias).tanh() @ last_weight + last_bias
        assert torch.allclose(outputs[learner], output, atol=1e-6)
    first = next(stack.parameters())
    assert not torch.allclose(first[0], first[1])


def test_initial_weights_are_orthogonal() -> None:
    weight = StackedLinear(2, 6, 6, gain=2.0).weight[1]
    assert torch.allclose(weight @ weight.mT, 4 * torch.eye(6), atol=1e-5)


def test_gradient_norms_are_clipped_per_learner() -> None:
    parameters = [nn.Parameter(torch.zeros(4, 3)), nn.Parameter(torch.zeros(2, 5))]
    parameters[0].grad, parameters[1].grad = torch.ones(4, 3), torch.ones(2, 5)
    parameters[0].grad[1], parameters[0].grad[3], parameters[1].grad[1] = 1e-3, 1e-3, 1e-3  # the second of two learners
    norms = clip_grad_norm_per_learner(parameters, 1.0, num_learners=2)
    assert norms.tolist() == pytest.approx([11**0.5, 11**0.5 * 1e-3])
    first = torch.cat([parameters[0].grad[0], parameters[0].grad[2], parameters[1].grad[0]])
    assert float(first.norm()) == pytest.approx(1.0, abs=1e-5)
    assert torch.allclose(parameters[1].grad[1], torch.full((5,), 1e-3))


def test_single_size_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"an output size and one learner; got sizes=\[4\]"):
        StackedMLP(1, [4])


def test_gradient_norm_of_one_learner_is_clipped_above_the_limit() -> None:
    parameters = [nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(1, 4))]
    parameters[0].grad, parameters[1].grad = torch.full((2, 3), 3.0), torch.full((1, 4), 4.0)
    assert float(clip_grad_norm_per_learner(parameters, 20.0, num_learners=1)) == pytest.approx(118**0.5)
    assert bool((parameters[1].grad == 4).all())
    assert clip_grad_norm_per_learner(parameters, 1.0, num_learners=1).tolist() == pytest.approx([118**0.5])
    assert parameters[0].grad[0, 0].item() == pytest.approx(3 / 118**0.5, abs=1e-6)
    assert parameters[1].grad[0, 0].item() == pytest.approx(4 / 118**0.5, abs=1e-6)
