"""Claims about optimisation methods and their convergence, each with numerical evidence."""
