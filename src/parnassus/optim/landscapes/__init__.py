"""Functions to minimise with known minimisers, and optimiser trajectories on them."""
