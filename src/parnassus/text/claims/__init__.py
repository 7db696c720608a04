"""Claims about tokenisers, n-gram models and decoding."""
