"""Positional information: added to embeddings, applied to queries and keys, or as a bias on the scores."""
