"""The surrogate loss L_γ against direct computations."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import linear_schedule
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.surrogate_loss import matching_weight, score_surrogate_loss, surrogate_loss

SCHEDULE = linear_schedule(4, low=0.05, high=0.5)


def return_zeros(x: Tensor, t: Tensor) -> Tensor:
    return torch.zeros_like(x)


def test_loss_of_zero_denoiser_is_the_weighted_squared_norm_of_the_noise() -> None:
    torch.manual_seed(0)
    noise = torch.randn(4, 3, 1, 2, 2, dtype=torch.float64)
    gamma = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    expected = (gamma[:, None] * noise.square().flatten(2).sum(2)).sum(0)
    torch.testing.assert_close(
        surrogate_loss(return_zeros, SCHEDULE, gamma, torch.zeros(3, 1, 2, 2).double(), noise), expected
    )


def test_denoiser_receives_the_state_of_each_step() -> None:
    states = []

    def record(x: Tensor, t: Tensor) -> Tensor:
        states.append((x, t))
        return x

    x0, noise = torch.randn(3, 2), torch.randn(4, 3, 2)
    surrogate_loss(record, SCHEDULE, torch.ones(4), x0, noise)
    for step, (x, t) in enumerate(states):
        assert t.tolist() == [step] * 3
        torch.testing.assert_close(x, diffuse(SCHEDULE, x0, t, noise[step]))


def test_loss_of_zero_score_is_the_squared_norm_of_the_noise() -> None:
    noise = torch.ones(4, 1, 1, dtype=torch.float64)
    loss = score_surrogate_loss(
        return_zeros, SCHEDULE, matching_weight(SCHEDULE, torch.ones(4)), torch.zeros(1, 1).double(), noise
    )
    torch.testing.assert_close(loss, torch.tensor([4.0], dtype=torch.float64))


def test_weight_of_invalid_length_raises_value_error() -> None:
    with pytest.raises(ValueError, match="one value for each of the 4 steps; got 3"):
        surrogate_loss(return_zeros, SCHEDULE, torch.ones(3), torch.zeros(1, 1), torch.zeros(3, 1, 1))
