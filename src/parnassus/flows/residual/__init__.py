"""Residual flows and their continuous-time limit, with Lipschitz bounds and trace estimators."""
