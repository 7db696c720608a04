"""Claims about principal components, autoencoders and latent-variable models, each with its row."""
