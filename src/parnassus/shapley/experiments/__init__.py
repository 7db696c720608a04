"""Experiments on Shapley values; one file per command."""
