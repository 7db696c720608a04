"""Score matching objectives against closed forms."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.score_matching import (
    denoising_score_matching,
    explicit_score_matching,
    implicit_score_matching,
    multiscale_score_matching,
    sliced_score_matching,
    variance_weight,
)


def linear_score(x: Tensor) -> Tensor:
    return -2 * x


def test_explicit_matching_is_the_squared_distance_per_example() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    torch.testing.assert_close(explicit_score_matching(linear_score, torch.zeros_like, x), torch.tensor([4.0, 36.0]))


def test_implicit_matching_of_a_linear_field() -> None:
    """The trace is −2D, ½‖s‖² = 2‖x‖²."""
    x = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    torch.testing.assert_close(implicit_score_matching(linear_score, x), torch.tensor([-2.0, 14.0]))


def test_sliced_matching_uses_the_given_direction() -> None:
    x = torch.tensor([[1.0, 0.0]])
    probe = torch.tensor([[3.0, 1.0]])
    torch.testing.assert_close(sliced_score_matching(linear_score, x, probe), torch.tensor([-2 * 10 + 2.0]))


def test_denoising_matching_of_a_linear_field() -> None:
    """x̃ = 1 + 0.5 · 2 = 2, s(x̃) = −4, target (1 − 2)/0.25 = −4."""
    x, noise = torch.tensor([[1.0]]), torch.tensor([[2.0]])
    torch.testing.assert_close(denoising_score_matching(linear_score, x, noise, std=0.5), torch.tensor([0.0]))
    torch.testing.assert_close(denoising_score_matching(torch.zeros_like, x, noise, std=0.5), torch.tensor([16.0]))


def test_multiscale_loss_is_the_weighted_denoising_loss_per_level() -> None:
    torch.manual_seed(0)
    x, noise = torch.randn(2, 6, 3)
    levels = torch.tensor([0.1, 0.5, 2.0])
    t = torch.tensor([0, 1, 2, 2, 1, 0])
    losses = multiscale_score_matching(lambda y, t: linear_score(y) * (1 + t[:, None]), levels, x, t, noise)
    for level, std in enumerate(levels.tolist()):

        def score_at_level(y: Tensor, level: int = level) -> Tensor:
            return linear_score(y) * (1 + level)

        is_at_level = t == level
        expected = denoising_score_matching(score_at_level, x[is_at_level], noise[is_at_level], std=std)
        torch.testing.assert_close(losses[is_at_level], std**2 * expected)


def test_default_weight_is_the_variance() -> None:
    torch.testing.assert_close(variance_weight(torch.tensor([0.5, 3.0])), torch.tensor([0.25, 9.0]))


def test_true_score_minimises_the_denoising_loss() -> None:
    torch.manual_seed(0)
    mixture = IsotropicMixture.from_components(torch.tensor([[-1.0, 0.0], [1.0, 0.5]]), torch.tensor([0.3, 0.5]))
    x, _ = mixture.sample(50_000)
    noise, std = torch.randn_like(x), 0.4

    def loss(factor: float) -> float:
        return float(denoising_score_matching(lambda y: factor * mixture.score(y, 1.0, std), x, noise, std=std).mean())

    values = [loss(factor) for factor in (0.9, 1.0, 1.1)]
    assert values[1] < values[0]
    assert values[1] < values[2]


@pytest.mark.parametrize("std", [0.0, -1.0, float("nan")])
def test_non_positive_noise_std_raises_value_error(std: float) -> None:
    with pytest.raises(ValueError, match="std must be positive; got std="):
        denoising_score_matching(linear_score, torch.zeros(1, 1), torch.zeros(1, 1), std=std)
