"""Interactive views of Markov decision processes and trained agents."""
