"""Generative adversarial networks: a generator and a discriminator trained against each other."""

from parnassus.adversarial.gan import (
    GAN,
    discriminator_loss,
    minimax_loss,
    non_saturating_loss,
    optimal_discriminator,
)

__all__ = ["GAN", "discriminator_loss", "minimax_loss", "non_saturating_loss", "optimal_discriminator"]
