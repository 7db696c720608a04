"""DDPM: loss, samples and bound with exact denoisers; networks, guidance and errors."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion import DDPM, ResidualMLP, TimeMLP, clip_x0, linear_schedule, sinusoidal_embedding
from parnassus.diffusion.chain.exact_denoisers import gaussian_denoiser
from parnassus.diffusion.chain.predictions import x0_from_noise
from parnassus.diffusion.guidance import batched_classifier_free_guidance, classifier_free_guidance
from parnassus.diffusion.networks.mlp_denoisers import ResidualBlock

MEAN = torch.tensor([2.0, -1.0])


class Oracle(nn.Module):
    """The exact ε as a module, with a parameter so that the model has a device."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(1))
        self.oracle = gaussian_denoiser(linear_schedule(400, low=2.5e-4, high=0.05), MEAN, std)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.oracle(x, t) + 0 * self.zero


def oracle_model(std: float) -> DDPM:
    torch.manual_seed(0)
    oracle = Oracle(std)
    return DDPM(oracle, (2,), schedule=oracle.oracle.schedule)


def test_exact_denoiser_attains_the_minimum_loss() -> None:
    """The minimum loss is mean_t Var[ε | x_t] = mean_t ᾱ_t s² / (ᾱ_t s² + 1 − ᾱ_t)."""
    model = oracle_model(0.5)
    alpha_bar = model.schedule.alpha_bar
    minimum = (alpha_bar * 0.25 / (alpha_bar * 0.25 + 1 - alpha_bar)).mean().float()
    loss = model.loss(MEAN + 0.5 * torch.randn(100_000, 2))
    torch.testing.assert_close(loss, minimum, rtol=0.02, atol=0)


def test_samples_follow_the_data() -> None:
    x = oracle_model(0.5).sample(10_000)
    torch.testing.assert_close(x.mean(0), MEAN, atol=0.03, rtol=0)
    torch.testing.assert_close(x.std(0), torch.full((2,), 0.5), atol=0.02, rtol=0)


def test_log_prob_is_a_lower_bound_and_larger_near_the_mean() -> None:
    model = oracle_model(0.5)
    near, far = model.log_prob(MEAN.expand(200, 2)).mean(), model.log_prob(MEAN.expand(200, 2) + 2).mean()
    exact_log_prob = -torch.log(torch.tensor(2 * torch.pi * 0.25))
    assert far < near < exact_log_prob


def test_image_shapes() -> None:
    model = DDPM(ResidualMLP((1, 4, 4), 16, classes=3), (1, 4, 4), schedule=linear_schedule(5), classes=3)
    x, label = torch.rand(6, 1, 4, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    assert model.loss(x, label).shape == ()
    assert model.sample(6, label, guidance_scale=2.0).shape == (6, 1, 4, 4)
    assert model.log_prob(x, label).shape == (6,)


def test_all_parameters_receive_gradients() -> None:
    torch.manual_seed(0)
    model = DDPM(ResidualMLP((2,), 16, classes=2), (2,), schedule=linear_schedule(5), classes=2, dropout=0.5)
    for module in model.modules():
        if isinstance(module, ResidualBlock):
            nn.init.normal_(module.contract.weight)  # zero weights give earlier layers no gradient
    model.loss(torch.randn(64, 2), torch.arange(64) % 2).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name


def test_null_label_equals_no_label() -> None:
    network = ResidualMLP((2,), 16, classes=4)
    x, t = torch.randn(5, 2), torch.arange(5)
    assert torch.equal(network(x, t), network(x, t, torch.full((5,), 4)))


@pytest.mark.parametrize("scale", [0.0, 1.0, 2.5])
def test_batched_guidance_equals_guidance_in_two_calls(scale: float) -> None:
    torch.manual_seed(0)
    denoiser = ResidualMLP((1, 4, 4), 16, classes=3)
    for parameter in denoiser.parameters():
        nn.init.normal_(parameter, std=0.3)  # an untrained network ignores the class
    x, t, label = torch.randn(5, 1, 4, 4), torch.tensor([0, 3, 9, 1, 7]), torch.tensor([0, 2, 1, 1, 0])
    batched = batched_classifier_free_guidance(denoiser, label, scale, null=3)(x, t)
    torch.testing.assert_close(batched, classifier_free_guidance(denoiser, label, scale)(x, t))


def test_examples_of_a_batch_are_independent() -> None:
    for network in (ResidualMLP((2,), 16).double(), TimeMLP(2, 16).double()):
        x, t = torch.randn(5, 2).double(), torch.arange(5)
        torch.testing.assert_close(network(x, t)[2:3], network(x[2:3], t[2:3]))


def test_untrained_mlp_depends_on_the_step() -> None:
    network = TimeMLP(2, 16)
    x = torch.randn(1, 2).expand(2, 2)
    assert not torch.equal(*network(x, torch.tensor([0, 50])))


def test_sinusoidal_embedding_of_step_0() -> None:
    embedding = sinusoidal_embedding(torch.tensor([0]), 6)[0]
    torch.testing.assert_close(embedding, torch.tensor([0.0, 0, 0, 1, 1, 1]))


def test_clip_x0_keeps_the_prediction_in_range() -> None:
    schedule = linear_schedule(100)
    x, t = 3 * torch.randn(50, 2), torch.randint(100, (50,))
    noise = clip_x0(lambda x, _t: torch.zeros_like(x), schedule)(x, t)
    x0 = x0_from_noise(schedule, x, t, noise)
    torch.testing.assert_close(x0, (x / schedule.alpha_bar[t].sqrt()[:, None].float()).clamp(-1, 1), atol=1e-4, rtol=0)


def test_invalid_arguments_raise_value_error() -> None:
    unconditional = DDPM(ResidualMLP((2,), 8), (2,), schedule=linear_schedule(5))
    with pytest.raises(ValueError, match="without classes"):
        unconditional.sample(2, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="without classes"):
        unconditional.denoiser(torch.zeros(1, 2), torch.tensor([0]), torch.tensor([0]))
    conditional = DDPM(ResidualMLP((2,), 8, classes=2), (2,), schedule=linear_schedule(5), classes=2)
    with pytest.raises(ValueError, match="integers from 0 to 2; got"):
        conditional.sample(2, torch.tensor([0, 7]))
    with pytest.raises(ValueError, match=r"got dropout=1\.0"):
        DDPM(ResidualMLP((2,), 8), (2,), dropout=1.0)
    with pytest.raises(ValueError, match="width must be even"):
        ResidualMLP((2,), 7)(torch.zeros(1, 2), torch.tensor([0]))
