"""The score model with an exact network, whose scores, loss and samples are known."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.models.score_model import ScoreModel
from parnassus.diffusion.networks.score_networks import NoiseLevelMLP, mlp_energy, mlp_score
from parnassus.diffusion.scores.noise_levels import geometric_levels

LEVELS = geometric_levels(8, 0.05, 4.0)


class ExactNetwork(nn.Module):
    """E[ε | x_t] for N(1, 0.5²) data, given the scaled state x_t / √(1 + σ²)."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        sigma = LEVELS.to(x)[t].view(-1, *[1] * (x.dim() - 1))
        state = x * (1 + sigma.square()).sqrt()
        return sigma * (state - 1) / (0.25 + sigma.square())


def exact_model() -> ScoreModel:
    return ScoreModel(ExactNetwork(), (2,), LEVELS)


def test_score_matches_the_noised_data() -> None:
    x, t = torch.randn(8, 2), torch.arange(8)
    sigma = LEVELS.float()[:, None]
    torch.testing.assert_close(exact_model().score(x, t), -(x - 1) / (0.25 + sigma.square()))


def test_exact_network_attains_the_minimum_loss() -> None:
    """The minimum loss is the mean over the levels of Var[ε | x_t] = s²/(s² + σ²)."""
    torch.manual_seed(0)
    loss = exact_model().loss(1 + 0.5 * torch.randn(100_000, 2))
    minimum = (0.25 / (0.25 + LEVELS.square())).mean()
    assert float(loss) == pytest.approx(float(minimum), rel=0.02)


def test_samples_follow_the_data() -> None:
    torch.manual_seed(0)
    x = exact_model().sample(4_000, steps=40, factor=0.2)
    assert float(x.mean()) == pytest.approx(1.0, abs=0.05)
    assert float(x.std()) == pytest.approx(0.5, abs=0.05)


def test_decreasing_levels_raise_value_error() -> None:
    with pytest.raises(ValueError, match="levels must be positive and increase"):
        ScoreModel(ExactNetwork(), (2,), LEVELS.flip(0))


def test_noise_level_mlp_depends_on_the_level_and_all_parameters_receive_gradients() -> None:
    torch.manual_seed(0)
    network = NoiseLevelMLP(2, 16, layers=2)
    x = torch.randn(6, 2)
    low, high = (network(x, torch.full((6,), level)) for level in (-8.0, 5.0))
    assert float((low - high).detach().abs().min()) > 1e-4
    network(x, torch.linspace(-8, 5, 6)).square().sum().backward()
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in network.parameters())


def test_shapes_of_mlp_score_and_mlp_energy() -> None:
    x = torch.randn(4, 3)
    assert mlp_score(3)(x).shape == (4, 3)
    assert mlp_energy(3)(x).shape == (4, 1)


def test_odd_width_of_noise_level_mlp_raises_value_error() -> None:
    with pytest.raises(ValueError, match="width must be even"):
        NoiseLevelMLP(2, 15)
