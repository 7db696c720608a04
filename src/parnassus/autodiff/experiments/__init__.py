"""Experiments on automatic differentiation; one file per command."""
