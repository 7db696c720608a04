"""Experiments on kernels and infinitely wide networks; one file per command."""
