"""Experiments on sound; one file per command."""
