"""Collected experience: rollouts, returns, advantages, transitions and replay buffers."""
