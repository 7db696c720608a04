"""What is claimed of gradient descent and of its learning rate, each claim with its number."""
