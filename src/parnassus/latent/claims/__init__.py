"""Claims about PCA, autoencoders, latent-variable and energy-based models, each with numerical evidence."""
