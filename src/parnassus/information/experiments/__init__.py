"""Experiments on source codes and rate-distortion; one file per command."""
