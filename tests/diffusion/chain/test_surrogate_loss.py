"""L_γ by hand."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion import linear_schedule
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.surrogate_loss import matching_weight, score_surrogate_loss, surrogate_loss

SCHEDULE = linear_schedule(4, low=0.05, high=0.5)


def nothing(x: Tensor, t: Tensor) -> Tensor:
    return torch.zeros_like(x)


def test_a_silent_denoiser_pays_the_weighted_length_of_the_noise() -> None:
    torch.manual_seed(0)
    noise = torch.randn(4, 3, 1, 2, 2, dtype=torch.float64)
    gamma = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    expected = (gamma[:, None] * noise.square().flatten(2).sum(2)).sum(0)
    torch.testing.assert_close(
        surrogate_loss(nothing, SCHEDULE, gamma, torch.zeros(3, 1, 2, 2).double(), noise), expected
    )


def test_the_denoiser_sees_the_state_of_each_step() -> None:
    seen = []

    def listening(x: Tensor, t: Tensor) -> Tensor:
        seen.append((x, t))
        return x

    x0, noise = torch.randn(3, 2), torch.randn(4, 3, 2)
    surrogate_loss(listening, SCHEDULE, torch.ones(4), x0, noise)
    for step, (x, t) in enumerate(seen):
        assert t.tolist() == [step] * 3
        torch.testing.assert_close(x, diffuse(SCHEDULE, x0, t, noise[step]))


def test_a_silent_score_pays_the_length_of_the_kernels_score() -> None:
    noise = torch.ones(4, 1, 1, dtype=torch.float64)
    paid = score_surrogate_loss(
        nothing, SCHEDULE, matching_weight(SCHEDULE, torch.ones(4)), torch.zeros(1, 1).double(), noise
    )
    torch.testing.assert_close(paid, torch.tensor([4.0], dtype=torch.float64))


def test_a_weight_for_each_step() -> None:
    with pytest.raises(ValueError, match="one value for each of the 4 steps; got 3"):
        surrogate_loss(nothing, SCHEDULE, torch.ones(3), torch.zeros(1, 1), torch.zeros(3, 1, 1))
