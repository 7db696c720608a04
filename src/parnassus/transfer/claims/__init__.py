"""What is claimed of transfer, each statement with the number that decides it."""
