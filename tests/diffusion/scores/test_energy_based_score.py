"""The score of an energy network: values, gradients and errors."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.networks.score_networks import mlp_energy
from parnassus.diffusion.scores.energy_based_score import EnergyBasedScore
from parnassus.diffusion.scores.score_matching import implicit_score_matching


class QuadraticEnergy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.precision = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.precision * x.flatten(1).square().sum(1) / 2


def test_score_of_a_quadratic_energy_is_linear() -> None:
    x = torch.randn(4, 2, 2)
    score = EnergyBasedScore(QuadraticEnergy())
    torch.testing.assert_close(score(x), -3 * x)
    torch.testing.assert_close(score.unnormalised_log_prob(x), -1.5 * x.flatten(1).square().sum(1))


def test_score_matching_gradient_matches_closed_form() -> None:
    """The implicit loss a·D·(−1) + ½a²‖x‖² has slope −D + a‖x‖² in the precision a."""
    x = torch.tensor([[1.0, 2.0]])
    score = EnergyBasedScore(QuadraticEnergy())
    implicit_score_matching(score, x).sum().backward()
    gradient = next(score.parameters()).grad
    torch.testing.assert_close(gradient, torch.tensor(-2 + 3 * 5.0))


def test_score_under_no_grad_does_not_require_grad() -> None:
    score = EnergyBasedScore(mlp_energy(2, 8))
    x = torch.randn(5, 2)
    with torch.no_grad():
        detached = score(x)
    assert not detached.requires_grad
    torch.testing.assert_close(detached, score(x).detach())


def test_energy_of_invalid_shape_raises_value_error() -> None:
    with pytest.raises(ValueError, match="one value per example; got shape"):
        EnergyBasedScore(nn.Linear(2, 2))(torch.zeros(3, 2))
