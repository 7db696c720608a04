"""What is claimed of kernels, each statement with the number that decides it."""
