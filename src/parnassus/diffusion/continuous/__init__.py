"""Diffusion in continuous time: stochastic and ordinary differential equations and their solvers."""
