"""Claims about convolutional networks, each with numerical evidence."""
