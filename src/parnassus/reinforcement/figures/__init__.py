"""Figures of environments, grid worlds, state graphs and training runs."""
