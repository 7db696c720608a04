"""Random walks, Markov chains and hidden Markov models."""
