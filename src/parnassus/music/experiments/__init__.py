"""Experiments on symbolic music; one file per command."""
