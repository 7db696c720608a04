"""Prediction types (noise, data, velocity, score) give the same denoiser and the same samples."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion import DATA, DDPM, NOISE, SCORE, VELOCITY, NoisePredictor, PredictionType, ResidualMLP, ddim
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.objectives import weighted_objective
from parnassus.diffusion.chain.predictions import score_from_noise, velocity, x0_from_noise
from parnassus.diffusion.chain.schedules import cosine_schedule, linear_schedule

SCHEDULE = linear_schedule(100, low=1e-3, high=0.2)
MEAN = torch.tensor([2.0, -1.0], dtype=torch.float64)


class ExactNetwork(nn.Module):
    """A network with the exact output for a prediction type."""

    def __init__(self, prediction: PredictionType) -> None:
        super().__init__()
        self.prediction = prediction
        self.oracle = gaussian_denoiser(SCHEDULE, MEAN, 0.5)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.prediction.output(SCHEDULE, x, t, self.oracle(x, t))


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(100, 2, dtype=torch.float64)


@pytest.mark.parametrize("prediction", [NOISE, DATA, VELOCITY, SCORE])
def test_all_prediction_types_give_the_same_denoiser(prediction: PredictionType, x: Tensor) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        denoiser = NoisePredictor(ExactNetwork(prediction), prediction, SCHEDULE)
    finally:
        torch.set_default_dtype(torch.float32)
    oracle, t = gaussian_denoiser(SCHEDULE, MEAN, 0.5), torch.arange(100)
    torch.testing.assert_close(denoiser(x, t), oracle(x, t), atol=1e-9, rtol=0)
    torch.testing.assert_close(ddim(denoiser, SCHEDULE, x), ddim(oracle, SCHEDULE, x), atol=1e-7, rtol=0)


def test_outputs_agree_with_the_conversion_functions(x: Tensor) -> None:
    t, noise = torch.arange(100), torch.randn_like(x)
    torch.testing.assert_close(NOISE.output(SCHEDULE, x, t, noise), noise)
    torch.testing.assert_close(DATA.output(SCHEDULE, x, t, noise), x0_from_noise(SCHEDULE, x, t, noise))
    torch.testing.assert_close(SCORE.output(SCHEDULE, x, t, noise), score_from_noise(SCHEDULE, t, noise))
    x0 = x0_from_noise(SCHEDULE, x, t, noise)
    torch.testing.assert_close(VELOCITY.output(SCHEDULE, x, t, noise), velocity(SCHEDULE, x0, t, noise))


def test_state_and_velocity_are_a_rotation_of_data_and_noise(x: Tensor) -> None:
    """(x_t, v) is (x_0, ε) rotated by φ, so x_t² + v² = x_0² + ε²."""
    t, noise = torch.arange(100), torch.randn_like(x)
    rotated = diffuse(SCHEDULE, x, t, noise).square() + velocity(SCHEDULE, x, t, noise).square()
    torch.testing.assert_close(rotated, x.square() + noise.square())


def test_velocity_loss_is_accurate_in_float32_at_low_signal() -> None:
    """At ᾱ = 2e-9 the loss of v is computed from ε with a weight of 4e8; its relative error stays below 1 %."""
    torch.manual_seed(0)
    schedule, t = cosine_schedule(1_000), torch.full((1_000,), 999)
    x0, noise, predicted = torch.randn(3, 1_000, 1)

    def denoiser(x: Tensor, t: Tensor) -> Tensor:
        return VELOCITY.noise(schedule, x, t, predicted)

    loss = weighted_objective(VELOCITY.weight)(denoiser, schedule, x0, t, noise).mean()
    torch.testing.assert_close(loss, (predicted - velocity(schedule, x0, t, noise)).square().mean(), rtol=0.01, atol=0)


def test_model_learns_the_velocity_of_a_gaussian() -> None:
    """E[v | x_t] of N(0, s²) is the line √ᾱ √(1−ᾱ) (1 − s²) / (ᾱ s² + 1 − ᾱ) x_t."""

    class LinearNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = nn.Parameter(torch.zeros(10))

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            return self.slope[t][:, None] * x

    torch.manual_seed(0)
    schedule = linear_schedule(10, low=0.02, high=0.6)
    network = LinearNetwork()
    model = DDPM(
        NoisePredictor(network, VELOCITY, schedule),
        (1,),
        schedule=schedule,
        objective=weighted_objective(VELOCITY.weight),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(300):
        optimizer.param_groups[0]["lr"] = 2.0 / (1 + step / 20)
        optimizer.zero_grad()
        model.loss(0.5 * torch.randn(2_000, 1)).backward()
        optimizer.step()
    alpha_bar = schedule.alpha_bar
    slope = (alpha_bar * (1 - alpha_bar)).sqrt() * 0.75 / (0.25 * alpha_bar + 1 - alpha_bar)
    torch.testing.assert_close(network.slope.detach().double(), slope, atol=0.05, rtol=0)


def test_labels_reach_the_network_and_factors_are_not_in_the_state_dict() -> None:
    network = ResidualMLP((2,), 8, classes=3)
    denoiser = NoisePredictor(network, VELOCITY, SCHEDULE)
    x, t = torch.randn(4, 2), torch.arange(4)
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    assert not torch.equal(denoiser(x, t, torch.tensor([0, 1, 2, 0])), denoiser(x, t))
    assert set(denoiser.state_dict()) == {f"network.{name}" for name in network.state_dict()}
