"""Experiments on attention and transformers; one file per command."""
