"""Claims about convolutional networks."""
