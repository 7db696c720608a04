"""Gradient flow with a constant kernel: its modes, its ensembles and their information (book sec. 15.4)."""
