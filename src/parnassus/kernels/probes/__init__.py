"""Things to touch: what Gaussian processes and wide networks believe between the points you click."""
