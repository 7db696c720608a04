"""Claims about principal components, autoencoders, latent-variable models and energy-based models."""
