"""Finite distributions, joint densities and Gaussians."""
