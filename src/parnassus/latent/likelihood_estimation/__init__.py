"""Estimators of log p(x) and log Z: importance sampling and annealed importance sampling."""
