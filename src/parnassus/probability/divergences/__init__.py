"""Entropy, information, divergences and distances between distributions."""
