"""Experiments on tokenisers and decoding; one file per command."""
