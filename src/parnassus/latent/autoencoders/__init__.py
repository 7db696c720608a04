"""Deterministic autoencoders, their penalties, and encoder and decoder networks."""
