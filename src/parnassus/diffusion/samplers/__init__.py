"""Samplers: DDPM, DDIM and its inversion, second-order solvers, Langevin dynamics."""
