"""What is claimed of attention, positions and transformers, each statement with the number that decides it."""
