"""Kernel regression, the non-parametric case of attention, and ridge regression on features."""
