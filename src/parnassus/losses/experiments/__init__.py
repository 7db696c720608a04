"""Experiments on loss functions and norms; one file per command."""
