"""What is claimed of diffusion models, each statement with the number that decides it."""
