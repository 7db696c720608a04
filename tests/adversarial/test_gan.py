"""GAN losses compared with closed forms, and gradients of both networks."""

from math import log

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from parnassus.adversarial import GAN, discriminator_loss, minimax_loss, non_saturating_loss, optimal_discriminator


def make_gan() -> GAN:
    torch.manual_seed(0)
    return GAN(nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)), latent_dim=3)


def test_discriminator_loss_is_the_sum_of_two_cross_entropies() -> None:
    real, fake = torch.randn(7, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    expected = binary_cross_entropy_with_logits(real, torch.ones_like(real))
    expected = expected + binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
    torch.testing.assert_close(discriminator_loss(real, fake), expected)


def test_losses_of_a_constant_discriminator_match_closed_forms() -> None:
    zero_logits = torch.zeros(3)
    assert float(discriminator_loss(zero_logits, zero_logits)) == pytest.approx(log(4))
    assert float(minimax_loss(zero_logits)) == pytest.approx(-log(2))
    assert float(non_saturating_loss(zero_logits)) == pytest.approx(log(2))


def test_losses_are_finite_for_large_logits() -> None:
    large_logits = torch.tensor([-1e4, 1e4])
    for loss in (
        minimax_loss(large_logits),
        non_saturating_loss(large_logits),
        discriminator_loss(large_logits, large_logits),
    ):
        assert bool(loss.isfinite())


def test_optimal_discriminator_is_certain_where_one_density_is_zero() -> None:
    p, q = torch.tensor([0.3, 0.0, 0.2, 0.0]), torch.tensor([0.1, 0.4, 0.0, 0.0])
    torch.testing.assert_close(optimal_discriminator(p, q), torch.tensor([0.75, 0.0, 1.0, 0.5]))


def has_changed(module: nn.Module, before: list[Tensor]) -> bool:
    return any(bool((new != old).any()) for new, old in zip(module.parameters(), before, strict=True))


def test_losses_give_gradients_to_their_networks() -> None:
    gan = make_gan()
    gan.discriminator_loss(torch.randn(8, 2)).backward()
    assert all(weight.grad is None for weight in gan.generator.parameters())
    assert all(weight.grad is not None for weight in gan.discriminator.parameters())
    gan.generator_loss(8).backward()
    assert all(weight.grad is not None for weight in gan.generator.parameters())


def test_generator_step_decreases_its_loss() -> None:
    gan = make_gan()
    before = [weight.detach().clone() for weight in gan.generator.parameters()]
    optimizer = torch.optim.SGD(gan.generator.parameters(), lr=0.1)
    torch.manual_seed(1)
    loss = gan.generator_loss(64)
    loss.backward()
    optimizer.step()
    torch.manual_seed(1)  # the same noise
    assert bool(gan.generator_loss(64) < loss)
    assert has_changed(gan.generator, before)


def test_samples_are_generator_outputs_without_gradients() -> None:
    gan = make_gan()
    torch.manual_seed(5)
    samples = gan.sample(6)
    torch.manual_seed(5)
    torch.testing.assert_close(samples, gan.generator(torch.randn(6, 3)))
    assert not samples.requires_grad


def test_minimax_loss_is_supported() -> None:
    gan = make_gan()
    minimax = GAN(gan.generator, gan.discriminator, latent_dim=3, generator_loss=minimax_loss)
    torch.manual_seed(0)
    logits = gan.logits(gan.generate(5))
    torch.manual_seed(0)
    torch.testing.assert_close(minimax.generator_loss(5), (1 - logits.sigmoid()).log().mean())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="latent_dim must be at least 1; got latent_dim=0"):
        GAN(nn.Linear(1, 1), nn.Linear(1, 1), latent_dim=0)
    with pytest.raises(ValueError, match="densities must not be negative"):
        optimal_discriminator(torch.tensor([-0.1]), torch.tensor([1.0]))
