"""Experiments on diffusion models; one file per command."""
