"""Optimisers, weight decay, gradient clipping and iterate averaging."""
