"""Claims about kernels and infinitely wide networks, each with numerical evidence."""
