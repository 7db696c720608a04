"""Scores ∇ log p(x): score matching, Tweedie's formula, noise levels, Gaussian mixtures."""
