"""Experiments on reinforcement learning; one file per command."""
