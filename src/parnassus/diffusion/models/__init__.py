"""Generative models with `loss` and `sample`: DDPM, variational diffusion, score models."""
