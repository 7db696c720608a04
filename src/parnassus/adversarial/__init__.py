"""Adversaries: a forger and a detective train each other."""

from parnassus.adversarial.gan import (
    GAN,
    discriminator_loss,
    minimax_loss,
    non_saturating_loss,
    optimal_discriminator,
)

__all__ = ["GAN", "discriminator_loss", "minimax_loss", "non_saturating_loss", "optimal_discriminator"]
