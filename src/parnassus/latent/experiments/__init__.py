"""Experiments on latent-variable models; one file per command."""
