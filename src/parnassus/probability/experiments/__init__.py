"""Experiments on probability; one file per command."""
