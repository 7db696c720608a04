"""What is claimed of reinforcement learning, each statement with the number that decides it."""
