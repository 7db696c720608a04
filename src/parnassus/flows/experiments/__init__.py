"""Experiments on flows and autoregressive models; one file per command."""
