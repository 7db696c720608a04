"""Claims about distributions, divergences, stochastic processes and inference, each with numerical evidence."""
