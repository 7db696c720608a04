"""Interactive views: Gaussian processes, random networks and infinitely wide networks."""
