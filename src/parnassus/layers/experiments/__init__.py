"""Experiments on dense networks, their layers and linear models; one file per command."""
