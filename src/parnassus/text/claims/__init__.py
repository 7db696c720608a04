"""What is claimed of tokens and decoding, each statement with the number that decides it."""
