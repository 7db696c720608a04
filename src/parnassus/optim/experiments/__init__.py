"""Experiments on optimisation; one file per command."""
