"""Claims about optimisation methods and their convergence."""
