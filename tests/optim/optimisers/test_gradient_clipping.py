"""Gradient clipping by global norm."""

import pytest
import torch
from torch import nn

from parnassus.optim import clip_by_global_norm, clip_gradients, global_norm


def test_norm_is_of_all_tensors_as_one_vector() -> None:
    assert float(global_norm([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])])) == 5.0
    assert float(global_norm([])) == 0.0


def test_large_gradient_is_scaled_by_one_factor() -> None:
    first, second = clip_by_global_norm([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])], 1.0)
    torch.testing.assert_close(first, torch.tensor([0.6]))
    torch.testing.assert_close(second, torch.tensor([[0.0, 0.8]]))


def test_small_or_zero_gradient_is_unchanged() -> None:
    gradient = torch.tensor([0.3, -0.4])
    assert torch.equal(clip_by_global_norm([gradient], 0.5)[0], gradient)
    assert torch.equal(clip_by_global_norm([torch.zeros(3)], 0.5)[0], torch.zeros(3))


def test_clipping_in_place_matches_torch_and_skips_missing_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in ((3, 2), (4,), (2,))]
    for parameter in parameters[:2]:
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    torch_parameters = [nn.Parameter(parameter.detach().clone()) for parameter in parameters]
    for parameter, torch_parameter in zip(parameters[:2], torch_parameters[:2], strict=True):
        assert parameter.grad is not None
        torch_parameter.grad = parameter.grad.clone()
    norm, torch_norm = clip_gradients(parameters, 0.7), nn.utils.clip_grad_norm_(torch_parameters, 0.7)
    torch.testing.assert_close(norm, torch_norm)
    for parameter, torch_parameter in zip(parameters[:2], torch_parameters[:2], strict=True):
        torch.testing.assert_close(parameter.grad, torch_parameter.grad, rtol=3e-6, atol=0)
    assert parameters[2].grad is None


def test_missing_gradients_have_norm_zero() -> None:
    assert float(clip_gradients([nn.Parameter(torch.ones(2))], 1.0)) == 0.0


@pytest.mark.parametrize("max_norm", [0.0, -1.0, float("nan")])
def test_non_positive_max_norm_raises_value_error(max_norm: float) -> None:
    with pytest.raises(ValueError, match=f"max_norm must be positive; got max_norm={max_norm}"):
        clip_by_global_norm([torch.ones(2)], max_norm)
