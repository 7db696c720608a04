"""Claims about distributions, divergences, expectations, stochastic processes and inference."""
