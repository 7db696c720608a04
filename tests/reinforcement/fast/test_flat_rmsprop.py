"""FlatRMSprop compared with torch.optim.RMSprop."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.optim import RMSprop

from parnassus.reinforcement.fast.flat_rmsprop import FlatRMSprop
from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner


def make_parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(2, 3, 4)), nn.Parameter(torch.randn(2, 1, 5))]


def take_steps(
    optimizer: RMSprop, parameters: list[nn.Parameter], steps: range, *, max_norm: float | None = None
) -> None:
    for step in steps:
        torch.manual_seed(step)
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        if max_norm is not None:
            clip_grad_norm_per_learner(parameters, max_norm, num_learners=2)
        optimizer.step()


def test_steps_are_bit_identical_to_rmsprop() -> None:
    parameters, reference_parameters = make_parameters(), make_parameters()
    flat, reference = (
        FlatRMSprop(parameters, 0.1, alpha=0.9, eps=1e-5),
        RMSprop(reference_parameters, 0.1, alpha=0.9, eps=1e-5),
    )
    take_steps(flat, parameters, range(4))
    take_steps(reference, reference_parameters, range(4))
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))
    restored = FlatRMSprop(reference_parameters, 0.1, alpha=0.9, eps=1e-5)
    restored.load_state_dict(reference.state_dict())
    take_steps(flat, parameters, range(4, 8))
    take_steps(restored, reference_parameters, range(4, 8))
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))


def test_state_dict_loads_into_torch_rmsprop() -> None:
    parameters, reference_parameters = make_parameters(), make_parameters()
    flat, reference = FlatRMSprop(parameters, 0.1), RMSprop(reference_parameters, 0.1)
    take_steps(flat, parameters, range(3))
    reference.load_state_dict(deepcopy(flat.state_dict()))
    with torch.no_grad():
        for reference_parameter, parameter in zip(reference_parameters, parameters, strict=True):
            reference_parameter.copy_(parameter)
    take_steps(flat, parameters, range(3, 6))
    take_steps(reference, reference_parameters, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))


def test_max_norm_clips_gradients_before_the_step() -> None:
    parameters, reference_parameters = make_parameters(), make_parameters()
    take_steps(FlatRMSprop(parameters, 0.1, max_norm=0.5, num_learners=2), parameters, range(3))
    take_steps(RMSprop(reference_parameters, 0.1), reference_parameters, range(3), max_norm=0.5)
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))
    unclipped = make_parameters()
    take_steps(FlatRMSprop(unclipped, 0.1), unclipped, range(3))
    assert not torch.equal(unclipped[0], parameters[0])


def test_two_parameter_groups_raise_value_error() -> None:
    first, second = make_parameters()
    with pytest.raises(ValueError, match="got 2 groups"):
        FlatRMSprop([{"params": [first]}, {"params": [second]}])
