"""What is claimed of music as sequences, each statement with the number that decides it."""
