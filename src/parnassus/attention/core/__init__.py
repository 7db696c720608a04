"""Attention itself: scores, masks, softmax weights, heads, lookups and caches."""
