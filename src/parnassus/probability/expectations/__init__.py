"""Expectations, inequalities and modes of convergence."""
