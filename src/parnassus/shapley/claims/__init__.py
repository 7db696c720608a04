"""What is claimed of Shapley values, each statement with the number that decides it."""
