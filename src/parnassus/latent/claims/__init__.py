"""What is claimed of principal components and autoencoders, each claim with its number."""
