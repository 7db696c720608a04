"""Optimisers, and what modifies their steps: weight decay, gradient clipping, averaging."""
