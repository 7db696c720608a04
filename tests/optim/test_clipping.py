"""Clipping by the norm of everything at once."""

import pytest
import torch
from torch import nn

from parnassus.optim import clip_gradients, clipped, global_norm


def test_the_norm_is_of_all_tensors_as_one_vector() -> None:
    assert float(global_norm([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])])) == 5.0
    assert float(global_norm([])) == 0.0


def test_a_long_gradient_is_shortened_by_one_factor() -> None:
    first, second = clipped([torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])], 1.0)
    torch.testing.assert_close(first, torch.tensor([0.6]))
    torch.testing.assert_close(second, torch.tensor([[0.0, 0.8]]))


def test_a_short_or_zero_gradient_is_left_alone() -> None:
    short = torch.tensor([0.3, -0.4])
    assert torch.equal(clipped([short], 0.5)[0], short)
    assert torch.equal(clipped([torch.zeros(3)], 0.5)[0], torch.zeros(3))


def test_in_place_it_is_torchs_up_to_a_millionth_and_skips_what_has_no_gradient() -> None:
    source = torch.Generator().manual_seed(0)
    mine = [nn.Parameter(torch.zeros(shape)) for shape in ((3, 2), (4,), (2,))]
    for parameter in mine[:2]:
        parameter.grad = torch.randn(parameter.shape, generator=source)
    other = [nn.Parameter(parameter.detach().clone()) for parameter in mine]
    for parameter, twin in zip(mine[:2], other[:2], strict=True):
        assert parameter.grad is not None
        twin.grad = parameter.grad.clone()
    norm, theirs = clip_gradients(mine, 0.7), nn.utils.clip_grad_norm_(other, 0.7)
    torch.testing.assert_close(norm, theirs)
    for parameter, twin in zip(mine[:2], other[:2], strict=True):
        torch.testing.assert_close(parameter.grad, twin.grad, rtol=3e-6, atol=0)
    assert mine[2].grad is None


def test_nothing_to_clip_has_norm_zero() -> None:
    assert float(clip_gradients([nn.Parameter(torch.ones(2))], 1.0)) == 0.0


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_is_not_positive_gets_a_sentence(limit: float) -> None:
    with pytest.raises(ValueError, match=f"the limit of a norm must be positive; got limit={limit}"):
        clipped([torch.ones(2)], limit)
