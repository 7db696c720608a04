"""Bayes' theorem, latent-variable models and estimates of their evidence."""
