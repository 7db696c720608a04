"""Differential equations that gradient descent and Nesterov's method discretise."""
