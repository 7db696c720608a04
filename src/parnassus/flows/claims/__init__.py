"""What is claimed of flows and autoregressive models, each statement with the number that decides it."""
