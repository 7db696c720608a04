"""What is claimed of adversaries, each statement with the number that decides it."""
