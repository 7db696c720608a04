"""Experiments of reinforcement learning, one command each."""
