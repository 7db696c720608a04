"""Latent spaces: interpolation, grids of codes and quality metrics."""
