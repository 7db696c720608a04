"""Variational autoencoders: the ELBO, its gradient estimators, decoders and variants of the VAE."""
