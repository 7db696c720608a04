"""Convex sets and functions, and the convergence bounds that follow from convexity."""
