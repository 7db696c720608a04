"""Experiments on convolutional networks; one file per command."""
