"""Claims about tokenisers, n-gram models and decoding, each with numerical evidence."""
