"""Experiments on generative adversarial networks; one file per command."""
