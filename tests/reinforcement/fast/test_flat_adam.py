"""FlatAdam compared with torch.optim.Adam."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.optim import Adam

from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner


def make_parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))]


def take_steps(optimizer: Adam, parameters: list[nn.Parameter], steps: range) -> None:
    for step in steps:
        torch.manual_seed(step)
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()


def test_steps_are_bit_identical_to_fused_adam() -> None:
    parameters, reference_parameters = make_parameters(), make_parameters()
    flat, reference = FlatAdam(parameters, 0.1, eps=1e-5), Adam(reference_parameters, 0.1, eps=1e-5, fused=True)
    take_steps(flat, parameters, range(4))
    take_steps(reference, reference_parameters, range(4))
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))
    restored = FlatAdam(reference_parameters, 0.1, eps=1e-5)
    restored.load_state_dict(reference.state_dict())
    take_steps(flat, parameters, range(4, 8))
    take_steps(restored, reference_parameters, range(4, 8))
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))


def test_load_state_dict_after_steps_replaces_the_state() -> None:
    parameters, reference_parameters = make_parameters(), make_parameters()
    flat, reference = FlatAdam(parameters, 0.1), FlatAdam(reference_parameters, 0.1)
    take_steps(flat, parameters, range(3))
    take_steps(reference, reference_parameters, range(2))
    flat.load_state_dict(deepcopy(reference.state_dict()))
    with torch.no_grad():
        for parameter, reference_parameter in zip(parameters, reference_parameters, strict=True):
            parameter.copy_(reference_parameter)
    take_steps(flat, parameters, range(2, 5))
    take_steps(reference, reference_parameters, range(2, 5))
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))


def test_two_parameter_groups_raise_value_error() -> None:
    first, second = make_parameters()
    with pytest.raises(ValueError, match="got 2 groups"):
        FlatAdam([{"params": [first]}, {"params": [second]}])


def test_denormal_moments_are_flushed_to_zero() -> None:
    """Denormal moments are set to 0 without changing the parameters."""
    parameters, reference_parameters = make_parameters(), make_parameters()
    flat, reference = FlatAdam(parameters, 0.1), Adam(reference_parameters, 0.1, fused=True)
    for step in range(1_025):
        for parameter, reference_parameter in zip(parameters, reference_parameters, strict=True):
            parameter.grad, reference_parameter.grad = (
                torch.full_like(p, float(step == 0)) for p in (parameter, reference_parameter)
            )
        flat.step()
        reference.step()
    assert all(torch.equal(a, b) for a, b in zip(parameters, reference_parameters, strict=True))
    assert all(0 < float(reference.state[parameter]["exp_avg"].max()) < 1e-38 for parameter in reference_parameters)
    assert not any(bool(flat.state[parameter]["exp_avg"].any()) for parameter in parameters)


def test_max_norm_clips_gradients_before_the_step() -> None:
    parameters, reference_parameters = make_parameters(), make_parameters()
    flat, reference = FlatAdam(parameters, 0.1, max_norm=0.5), Adam(reference_parameters, 0.1, fused=True)
    for group in (parameters, reference_parameters):
        torch.manual_seed(1)
        for parameter in group:
            parameter.grad = torch.randn_like(parameter)
    norms = clip_grad_norm_per_learner(reference_parameters, 0.5, num_learners=1)
    assert float(norms) > 0.5
    flat.step()
    reference.step()
    for parameter, reference_parameter in zip(parameters, reference_parameters, strict=True):
        torch.testing.assert_close(parameter.grad, reference_parameter.grad, atol=1e-7, rtol=0)
        torch.testing.assert_close(parameter, reference_parameter, atol=1e-6, rtol=0)
